"""Versions against specifiers."""

import pytest

from holdfast.environments.spec_findings import allowed_minors
from holdfast.environments.version_ranges import allows
from holdfast.project.environment_spec import EnvironmentSpec


@pytest.mark.parametrize(
    ("specifier", "version", "expected"),
    [
        ("", "2.12.0", True),
        ("==2.12", "2.12.0", True),
        ("==2.12.*", "2.12.0", True),
        ("==1.*", "2.12.0", False),
        ("!=2.12.0", "2.12.0", False),
        ("<2.12", "2.12.0", False),
        ("<=2.12", "2.12.0", True),
        (">2, <3", "2.12.0", True),
        (">=2.4,<2.5", "2.12.0", False),
        ("~=2.4", "2.12.0", True),
        ("~=2.4.0", "2.12.0", False),
        ("==0.0", "0.0.post12", False),
        ("==0.0", "0.0", True),
        ("==2.1.0+cu118", "2.1.0", True),
        ("something else", "1.0", True),
    ],
)
def test_a_version_is_within_a_specifier_or_not(specifier, version, expected):
    assert allows(specifier, version) is expected


@pytest.mark.parametrize(
    ("python", "first", "last"),
    [(None, 6, 15), ("3.9", 9, 9), ("3.11.4", 11, 11), (">=3.8,<3.11", 8, 10), ("~=3.9", 9, 15), ("3", 6, 15)],
)
def test_the_pythons_that_a_spec_allows(python, first, last):
    assert allowed_minors(EnvironmentSpec(python=python)) == set(range(first, last + 1))
