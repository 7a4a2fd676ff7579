"""Which key of the target's file Docker's words are about."""

from __future__ import annotations

import pytest

from holdfast.farside.containers.complaints import Answer, explain


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("docker: Error response from daemon: network hots not found.", "Correct `network` in the compute target."),
        (
            "docker: Error response from daemon: Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs "
            "available.\nSee 'docker run --help'.",
            "Correct `cpus` in the compute target.",
        ),
        (
            'invalid argument "lots" for "--cpus" flag: Failed to parse lots as a rational number',
            "Correct `cpus` in the compute target.",
        ),
        ("docker: Error response from daemon: Minimum memory limit allowed is 6MB.", "Correct `memory` in the compute"),
        ('invalid argument "8x" for "-m, --memory" flag: invalid suffix: \'x\'', "Correct `memory` in the compute"),
        ('invalid argument "8x" for "--shm-size" flag: invalid suffix: \'x\'', "Correct `shmSize` in the compute"),
        (
            "unknown flag: --ulimt\nSee 'docker run --help'.",
            "Correct `dockerArguments` in the compute target. Did you mean --ulimit?",
        ),
        ("unknown flag: --qqqqqq", "Correct `dockerArguments` in the compute target."),
    ],
)
def test_an_option_that_docker_does_not_take_is_traced_to_its_key(said: str, hint: str) -> None:
    refusal = explain(Answer(125, "", said))
    assert refusal.hint.startswith(hint)
    assert ("Did you mean" in refusal.hint) is ("ulimt" in said)
