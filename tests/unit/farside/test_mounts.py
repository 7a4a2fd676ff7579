"""Which file system a path is on, and what its quota leaves."""

from holdfast.farside.machine.mounts import folder_facts, mount_of, parse, parse_quota, read_mounts

MOUNTINFO = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/export/home rw,vers=4.2
31 22 0:41 / /tmp rw,nosuid,noexec shared:6 - tmpfs tmpfs rw,size=1024k
32 30 0:42 / /home/me/with\040blank rw - fuse.sshfs me@box:/ rw
33 22 0:43 / /data rw - ext4 /dev/sdb1 rw
34 33 0:44 / /data rw - xfs /dev/sdc1 rw
broken line
"""


KINDS = {
    "/etc": "ext4",
    "/home": "nfs4",
    "/home/me": "nfs4",
    "/homestead": "ext4",
    "/home/me/with blank/x": "fuse.sshfs",
    "/data/1": "xfs",
    "/tmp/a": "tmpfs",
}


def test_the_longest_mount_point_above_a_path_counts_and_the_last_of_several():
    mounts = parse(MOUNTINFO)
    assert {path: getattr(mount_of(path, mounts), "kind", None) for path in KINDS} == KINDS


def test_network_file_systems_and_noexec_are_told():
    mounts = parse(MOUNTINFO)
    assert [mount.point for mount in mounts if mount.is_network] == ["/home", "/home/me/with blank"]
    assert [mount.point for mount in mounts if "noexec" in mount.options] == ["/tmp"]


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_above_it(tmp_path):
    listed = tmp_path / "mounts"
    listed.write_text(f"1 0 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / {tmp_path} rw,noexec - nfs server:/x rw\n")
    facts = folder_facts(str(tmp_path / "not" / "yet"), read_mounts({"HOLDFAST_MOUNTS": str(listed)}))
    assert (facts["file_system"], facts["network"], facts["noexec"]) == ("nfs", True, True)
    assert facts["total"] >= facts["free"] > 0


def test_without_a_list_of_mounts_the_kind_is_not_known_and_the_room_is(tmp_path):
    facts = folder_facts(str(tmp_path), read_mounts({"HOLDFAST_MOUNTS": str(tmp_path / "none")}))
    assert (facts["file_system"], facts["network"]) == (None, None)
    assert facts["free"] > 0


def test_the_quota_is_that_of_the_folders_own_file_system():
    text = (
        "Disk quotas for user me (uid 1000): \n"
        "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
        "server:/export/home 1048576* 1000000 2000000 1700000000 500 0 1000 0\n"
        "      /dev/sdb1       0       0       0       0       0       0       0       0\n"
    )
    assert parse_quota(text, "server:/export/home", "/home") == {
        "used": 1048576 * 1024,
        "limit": 2000000 * 1024,
        "files": 500,
        "files_limit": 1000,
    }
    assert parse_quota(text, "/dev/sdb1", "/data") == {"used": 0, "limit": None, "files": 0, "files_limit": None}
    assert parse_quota(text, "/dev/other", "/") is None
    assert parse_quota("Disk quotas for user me (uid 1000): none\n", "/dev/sda1", "/") is None
