"""The tests of runs on this machine once more, on every other product: the same project, the same words, and a file
`local.compute` that says what `local` is.

Left out are those that never come to the machine of the run or prove what this side does with what came home, and those
that look at the machine in a way that only this one allows: its processes by their numbers, its folders, its memory.
Kills and hostile process trees are in `faults`.
"""

from __future__ import annotations

import pytest

from integration.docker.benches import container_bench  # noqa: F401 - a fixture
from integration.remote.conftest import box  # noqa: F401 - a fixture
from integration.runs.conftest import Bench, obeying_modes  # noqa: F401 - a fixture
from integration.runs.conftest import bench as bench_here  # noqa: F401 - a fixture
from integration.runs.test_choices import (  # noqa: F401 - tests
    test_a_crash_in_native_code_leaves_its_stack_in_the_output,
)
from integration.runs.test_ending import (  # noqa: F401 - tests
    test_a_client_killed_with_9_changes_nothing_for_the_run,
    test_a_run_that_is_gone_from_its_machine_is_lost_and_not_completed,
    test_a_second_cancel_can_shorten_the_grace_time,
    test_a_supervisor_told_to_stop_ends_its_run_in_order,
    test_cancel_sends_sigterm_and_gives_time_for_a_checkpoint,
    test_ctrl_c_detaches_and_says_how_to_follow_and_to_cancel,
    test_the_grace_time_is_also_for_the_scripts_children,
    test_the_time_limit_ends_a_script_that_ignores_sigterm,
)
from integration.runs.test_outputs import (  # noqa: F401 - tests
    test_hidden_files_and_links_to_the_folder_itself_come_home_and_pipes_are_told,
    test_outputs_that_the_script_made_unreadable_come_home,
    test_thousands_of_outputs_with_long_names_come_home,
    test_uploads_come_home_also_when_the_script_removed_its_outputs_folder,
)
from integration.runs.test_outputs_asked import (  # noqa: F401 - tests
    test_outputs_that_are_left_there_are_fetched_when_they_are_wanted_and_not_cleaned_before,
)
from integration.runs.test_secrets import (
    test_a_secret_is_passed_redacted_and_never_written,
)
from integration.runs.test_submit import (  # noqa: F401 - tests
    test_a_script_that_dies_of_a_signal_is_recorded_as_that,
    test_everything_after_the_script_goes_to_it_verbatim,
    test_files_written_outside_outputs_are_listed_and_can_be_fetched_until_clean,
    test_metrics_and_uploads_come_home,
    test_output_is_brought_home_byte_for_byte,
    test_outputs_come_home_also_when_the_script_changed_directory_and_failed,
    test_submit_exits_with_the_scripts_own_code_and_says_why,
    test_the_script_has_the_promised_variables_no_input_and_unbuffered_output,
)
from kit.homes import furnish_account

DEEPEST = "remotedocker"
ELSEWHERE = {
    test_thousands_of_outputs_with_long_names_come_home: "remote",
    test_the_grace_time_is_also_for_the_scripts_children: "docker",
    test_output_is_brought_home_byte_for_byte: "remote",
    test_cancel_sends_sigterm_and_gives_time_for_a_checkpoint: "docker",
    test_metrics_and_uploads_come_home: "docker",
    test_a_secret_is_passed_redacted_and_never_written: "remote",
}
"""The suite of runs on this machine again, where it is most unlike this machine; a few on the other products, which
have suites of their own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("kind", [ELSEWHERE.get(metafunc.function, DEEPEST)])


@pytest.fixture
def bench(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    if kind == "remote":
        here: Bench = request.getfixturevalue("bench_here")
        far = request.getfixturevalue("box")()
        furnish_account(far.account)
        made = Bench(here.root, far.home, here.command)
        made.write("aml_config/local.compute", far.compute)
        made.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
        variables = far.environment
    else:
        contained = request.getfixturevalue("container_bench")
        contained.target(name="local")
        made, variables = Bench(contained.root, contained.home, contained.command), contained.variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return made
