"""The narrowest limit of a control group and all above it counts."""

import pytest

from holdfast.farside.machine.facts import limits

VERSION_TWO = {
    "proc/self/cgroup": "0::/user.slice/session-1.scope\n",
    "sys/fs/cgroup/user.slice/session-1.scope/cpu.max": "max 100000\n",
    "sys/fs/cgroup/user.slice/session-1.scope/memory.max": "8589934592\n",
    "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/user.slice/memory.max": "max\n",
}
VERSION_ONE = {
    "proc/self/cgroup": "4:cpu,cpuacct:/job\n3:memory:/job\n0::/\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000\n",
    "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [(VERSION_TWO, (1.5, 8589934592)), (VERSION_ONE, (2.0, 1073741824)), ({}, (None, None))],
    ids=["version two", "version one", "no groups"],
)
def test_the_narrowest_on_the_way_up_counts(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert limits(str(tmp_path)) == expected
