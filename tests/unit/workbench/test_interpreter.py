"""Which Python is used, and what is said about one that does not start."""

from __future__ import annotations

import pytest

from holdfast.errors import ProjectError
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.interpreter import find_python


@pytest.mark.parametrize(
    ("location", "message", "hint"),
    [
        ("python2", "`{path}`, which `pythonLocation: python2` names, does not start", "compute target"),
        ("python", "The active Python `{path}` does not start", "python --version"),
    ],
)
def test_a_python_that_does_not_start_is_called_what_it_is(tmp_path, location, message, hint):
    shim = tmp_path / location
    shim.write_text("#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    shim.chmod(0o755)
    context = Context(tmp_path, {"PATH": str(tmp_path)}, tmp_path, tmp_path)
    with pytest.raises(ProjectError) as caught:
        find_python(location, tmp_path, context)
    assert caught.value.message == message.format(path=shim) + ": no such version"
    assert hint in caught.value.hint
