"""What uv calls the machines that packages are chosen for."""

import pytest

from holdfast.environments.platforms import uv_platform
from holdfast.errors import NotAvailable


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("linux-x86_64-glibc2.36", "x86_64-manylinux_2_36"),
        ("linux-x86_64-glibc2.27", "x86_64-manylinux_2_17"),
        ("linux-aarch64-glibc2.31", "aarch64-manylinux_2_31"),
        ("linux-x86_64-glibc2.99", "x86_64-manylinux_2_40"),
        ("linux-aarch64-musl", "aarch64-unknown-linux-musl"),
    ],
)
def test_the_newest_system_that_runs_there_is_chosen(name, expected):
    assert uv_platform(name) == expected


@pytest.mark.parametrize("name", ["linux-ppc64le-glibc2.36", "linux-x86_64-glibc2.5", "darwin-arm64-musl", ""])
def test_a_machine_that_uv_does_not_know_is_refused_with_a_remedy(name):
    with pytest.raises(NotAvailable) as caught:
        uv_platform(name)
    assert f"`{name}`" in caught.value.message
    assert "userManagedEnvironment" in caught.value.hint
