"""The one line that starts the far side through any login shell."""

from __future__ import annotations

import json
import string
import subprocess
import zlib

import pytest

from holdfast.hosts.bootstrap import archive, for_any_shell, remote_line
from holdfast.hosts.shipment import far_side

SHELLS = ("sh", "bash", "zsh", "csh", "fish")


def test_the_line_has_no_quotes_no_exclamation_marks_and_no_line_breaks(tmp_path):
    line = remote_line(far_side(tmp_path), "~/a folder; rm -rf it's", "00ff")
    assert not set(line) & set("'\"!\n`$")


@pytest.mark.parametrize("word", ["a\nb", "", "a\0b"])
def test_what_cannot_be_quoted_for_every_shell_is_refused(word):
    with pytest.raises(ValueError, match="line break"):
        for_any_shell(word)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_reads_a_quoted_word_as_it_is(shell, needs):
    needs(shell)
    word = "".join(c for c in string.printable if c not in "\n\r\x0b\x0c") + "é~"
    done = subprocess.run([shell, "-c", f"printf %s {for_any_shell(word)}"], capture_output=True, check=True)
    assert done.stdout.decode() == word


def test_the_archive_holds_every_file_of_the_far_side(tmp_path):
    far = far_side(tmp_path)
    data = archive(far)
    assert int(data[:8], 16) == len(data) - 8
    files = json.loads(zlib.decompress(data[8:]))
    assert {name: text.encode() for name, text in files.items()} == dict(far.contents())
