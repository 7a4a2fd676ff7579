"""SHA-256 is the same from both implementations, and OpenSSL is loaded only for large data."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.farside.system import digests

SOURCE = Path(digests.__file__).parents[3]


def alone(lines: str) -> str:
    """Their output in a fresh Python."""
    program = (
        f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom holdfast.farside.system.digests import sha256\n{lines}"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("data", [b"", b"abc", b"x" * 5000])
def test_both_say_the_same(data):
    own = digests._pythons_own()
    assert own is not None, "this Python has one, else nothing is proven here"
    assert own.sha256(data).hexdigest() == digests.sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()


def test_pieces_are_hashed_as_a_whole():
    total = digests.sha256(size=6)
    for piece in (b"abc", b"def"):
        total.update(piece)
    assert total.hexdigest() == hashlib.sha256(b"abcdef").hexdigest()


@pytest.mark.parametrize(
    ("lines", "is_loaded"),
    [
        ("sha256(b'little').digest()", False),
        ("sha256(b'x' * (2 << 20))", True),
        ("sha256(size=2 << 20)", True),
        ("for _ in range(20): sha256(b'x' * (100 << 10))", True),
    ],
    ids=["little", "much", "much to come", "much in pieces"],
)
def test_openssl_is_loaded_where_it_pays(lines, is_loaded):
    assert alone(f"{lines}\nprint('hashlib' in sys.modules)").strip() == str(is_loaded)


def test_a_python_without_one_of_its_own_takes_the_other():
    hidden = "for name in ('_sha2', '_sha256'): sys.modules[name] = None\n"
    assert alone(hidden + "print(sha256(b'abc').hexdigest())").strip() == hashlib.sha256(b"abc").hexdigest()
