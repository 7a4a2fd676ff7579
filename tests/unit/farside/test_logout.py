"""What a system does to an account's processes at logout."""

import pytest

from holdfast.farside.operations.logout import ends_at_logout


@pytest.mark.parametrize(
    ("texts", "ends"),
    [
        ([], False),
        (["[Login]\n#KillUserProcesses=yes\n"], False),
        (["[Login]\nKillUserProcesses=yes\n"], True),
        (["KillUserProcesses = true", "KillUserProcesses=no"], False),
        (["KillUserProcesses=yes\nKillExcludeUsers=root me"], False),
        (["KillUserProcesses=yes\nKillOnlyUsers=you"], False),
        (["KillUserProcesses=yes\nKillOnlyUsers=you me"], True),
    ],
)
def test_what_logind_is_told_about_a_users_processes(texts, ends):
    assert ends_at_logout(texts, "me") is ends
