"""The Python of a login."""

import pytest

from holdfast.farside.operations.login_python import chosen_python


@pytest.mark.parametrize(
    ("said", "python"),
    [
        ("holdfast-python:3:/opt/conda/bin/python\nholdfast-python3:3:/usr/bin/python3\n", "/opt/conda/bin/python"),
        ("holdfast-python:2:/usr/bin/python\nholdfast-python3:3:/usr/bin/python3\n", "/usr/bin/python3"),
        ("Welcome!\x1b[0mholdfast-python3:3:/usr/bin/python 3\r\nbye", "/usr/bin/python 3"),
        ("print(holdfast-python:3:relative)", ""),
        ("", ""),
    ],
)
def test_the_python_is_found_in_what_a_login_prints(said, python):
    assert chosen_python(said) == python
