"""Another account of this machine, for one test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kit import accounts
from kit.accounts import Account


@pytest.fixture
def other(needs: Any) -> Iterator[Account]:
    needs("useradd", root=True)
    with accounts.premises() as folder:
        account = Account.create(folder)
        yield account
        account.remove()
