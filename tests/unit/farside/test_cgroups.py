"""The narrowest limit of a control group and all above it counts."""

from __future__ import annotations

from pathlib import Path

from holdfast.farside.machine.cgroups import limits


def files(root: Path, contents: dict[str, str]) -> str:
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_version_two_takes_the_narrowest_on_the_way_up(tmp_path: Path) -> None:
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/session-1.scope\n",
            "sys/fs/cgroup/user.slice/session-1.scope/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/session-1.scope/memory.max": "8589934592\n",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": "max\n",
        },
    )
    assert limits(root) == (1.5, 8589934592)


def test_version_one_names_its_controllers(tmp_path: Path) -> None:
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/job\n3:memory:/job\n0::/\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1073741824\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert limits(root) == (2.0, 1073741824)


def test_no_groups_are_no_limits(tmp_path: Path) -> None:
    assert limits(str(tmp_path)) == (None, None)
