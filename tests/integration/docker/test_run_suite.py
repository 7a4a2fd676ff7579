"""The tests of runs on this machine once more, on targets with containers: the same project, the same words, and a file
`local.compute` that says what `local` is."""

from __future__ import annotations

import pytest
from docker.benches import ContainerBench, container_bench, kind  # noqa: F401 - fixtures
from runs.conftest import Bench
from runs.test_choices import (  # noqa: F401 - tests
    test_a_crash_in_native_code_leaves_its_stack_in_the_output,
    test_a_script_named_like_an_option_runs,
    test_an_asynchronous_submit_gives_its_record_in_the_format_that_was_asked_for,
)
from runs.test_ending import (  # noqa: F401 - tests
    test_a_client_killed_with_9_changes_nothing_for_the_run,
    test_a_run_that_is_gone_from_its_machine_is_lost_and_not_completed,
    test_a_second_cancel_can_shorten_the_grace_time,
    test_a_supervisor_told_to_stop_ends_its_run_in_order,
    test_clean_never_touches_a_living_run,
    test_ctrl_c_detaches_and_says_how_to_follow_and_to_cancel,
    test_two_followers_see_every_line_once,
)
from runs.test_outputs import (  # noqa: F401 - tests
    test_a_log_that_is_begun_again_while_somebody_follows_is_not_spliced,
    test_a_stray_file_among_the_metrics_does_not_stop_anything,
    test_hidden_files_and_links_to_the_folder_itself_come_home_and_pipes_are_told,
    test_thousands_of_outputs_with_long_names_come_home,
    test_uploads_come_home_also_when_the_script_removed_its_outputs_folder,
)
from runs.test_outputs_asked import (  # noqa: F401 - tests
    test_outputs_come_home_while_somebody_follows_also_later,
    test_outputs_that_are_left_there_are_fetched_when_they_are_wanted_and_not_cleaned_before,
)
from runs.test_secrets import (  # noqa: F401 - tests
    test_a_secret_is_passed_redacted_and_never_written,
    test_a_secrets_list_in_the_runconfig_does_the_same,
    test_diagnostics_hide_the_values_of_variables,
)
from runs.test_submit import (  # noqa: F401 - tests
    test_a_script_that_dies_of_a_signal_is_recorded_as_that,
    test_everything_after_the_script_goes_to_it_verbatim,
    test_files_written_outside_outputs_are_listed_and_can_be_fetched_until_clean,
    test_metrics_and_uploads_come_home,
    test_output_is_brought_home_byte_for_byte,
    test_outputs_come_home_also_when_the_script_changed_directory_and_failed,
    test_submit_exits_with_the_scripts_own_code_and_says_why,
    test_the_script_has_the_promised_variables_no_input_and_unbuffered_output,
    test_the_script_runs_in_a_copy_so_that_a_later_edit_does_not_reach_it,
    test_wait_shows_no_output_but_the_end,
)


@pytest.fixture
def bench(container_bench: ContainerBench, monkeypatch: pytest.MonkeyPatch) -> Bench:  # noqa: F811
    for name, value in container_bench.variables.items():
        monkeypatch.setenv(name, value)
    container_bench.target(name="local")
    return Bench(container_bench.root, container_bench.home, container_bench.command)
