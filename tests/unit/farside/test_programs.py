"""Programs that are asked, and not waited for longer than they were given."""

from __future__ import annotations

import os

from holdfast.farside.system.programs import Program


def test_a_program_that_never_stops_printing_is_ended_at_its_deadline():
    answer = Program(["yes"], dict(os.environ)).answer(0.3, None)
    assert answer.code is None
    assert answer.output.startswith("y\ny\n")


def test_all_that_a_program_printed_before_it_ended_is_taken():
    answer = Program(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"], dict(os.environ)).answer(30.0, None)
    assert (answer.code, len(answer.output)) == (0, 3_000_000)
