"""What cannot be built is said with file, line and what to write."""

from __future__ import annotations

import pytest

from holdfast.environments.packages import plan_environment
from holdfast.errors import ConfigurationError
from holdfast.project.conda import CondaDependencies, Requirement


def test_a_conda_package_is_refused_in_whole_sentences() -> None:
    spec = CondaDependencies(conda=(Requirement("numpy", 4),))
    with pytest.raises(ConfigurationError) as caught:
        plan_environment(spec, "c.yml", "/usr/bin/python3", "uv")
    assert caught.value.message.splitlines()[1] == (
        "  c.yml:4: dependencies: `numpy` is a conda package, and this version builds Python packages only. "
        "Move it below `pip:` under the name that the Python package index has for it."
    )
