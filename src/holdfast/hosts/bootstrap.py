"""Starting the far side through a login shell: one line that every shell takes, whatever its start-up files print.

The line starts `python3` with a few lines of source. They look for the far side by its hash, ask for it if it
is missing, unpack what arrives, and become it. Everything said begins with a marker that holds a nonce.
"""

from __future__ import annotations

import json
import re
import zlib

from holdfast.hosts.shipment import FarSide

DEFAULT_HOME = "~/.holdfast"

# Runs on whatever `python3` is there, so it must be valid for any Python 3 up to the test of its version.
_SOURCE = """
import os, sys
nonce, digest, home = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]).decode("utf-8", "surrogateescape")
def say(text):
    os.write(1, ("\\nHOLDFAST %s %s\\n" % (nonce, text)).encode("utf-8", "replace"))
if sys.version_info < (3, 6):
    say("old %d.%d" % sys.version_info[:2])
    sys.exit(3)
home = os.path.expanduser(home)
root = os.path.join(home, "farside", digest)
whole = os.path.join(root, ".complete")
def take(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit(3)
        data += more
    return data
def make(path):
    try:
        os.makedirs(path, 0o700)
    except FileExistsError:
        return
    with open(os.path.join(path, ".holdfast-home"), "w") as marker:
        marker.write('{"format": 1}\\n')
def write(path, text):
    os.makedirs(os.path.join(os.path.dirname(path), "__pycache__"), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())
def unpack():
    import json, shutil, zlib
    files = json.loads(zlib.decompress(take(int(take(8), 16))).decode("utf-8"))
    make(home)
    new = os.path.join(home, "farside", ".new-%s-%s" % (digest, os.urandom(8).hex()))
    try:
        for name in files:
            write(os.path.join(new, name), files[name])
        write(os.path.join(new, ".complete"), "\\n".join(sorted(files)))
        if os.path.isdir(root) and not is_whole():
            os.rename(root, new + "-old")
        try:
            os.rename(new, root)
        except OSError:
            if not os.path.isdir(root):
                raise
    finally:
        shutil.rmtree(new, True)
        shutil.rmtree(new + "-old", True)
def is_whole():
    try:
        with open(whole, encoding="utf-8") as source:
            return all(os.path.exists(os.path.join(root, name)) for name in source.read().split("\\n"))
    except OSError:
        return False
for path in (home, os.path.dirname(root), root):
    try:
        found = os.stat(path)
    except OSError:
        break
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        say("%s %s" % ("open" if found.st_uid == os.getuid() else "foreign", path))
        sys.exit(3)
if not is_whole():
    say("need")
    mask = os.umask(0o022)
    os.umask(mask | 0o022)
    try:
        unpack()
    except OSError as error:
        say("cannot %d %s" % (error.errno or 0, error.filename or home))
        sys.exit(3)
    os.umask(mask)
entry = os.path.join(root, "holdfast", "farside", "main.py")
sys.argv[:] = [entry, "serve", home, nonce]
with open(entry, encoding="utf-8") as source:
    code = compile(source.read(), entry, "exec")
exec(code, {"__name__": "__main__", "__file__": entry})
"""


def remote_line(far: FarSide, home: str, nonce: str) -> str:
    """The command for the login shell of the host."""
    words = [
        "python3",
        "-I",
        "-S",
        "-c",
        "import sys;exec(bytes.fromhex(sys.argv.pop(1)))",
        _SOURCE.encode().hex(),
        nonce,
        far.digest,
        home.encode("utf-8", "surrogateescape").hex(),
    ]
    return " ".join(for_any_shell(word) for word in words)


def archive(far: FarSide) -> bytes:
    """What is sent where the far side is needed: its length, then its files."""
    files = {name: content.decode("utf-8") for name, content in far.contents()}
    data = zlib.compress(json.dumps(files).encode(), 9)
    return b"%08x" % len(data) + data


def for_any_shell(word: str) -> str:
    """Quoted by backslashes alone, which sh, bash, zsh, csh and fish read in the same way (quotes and `!` they do
    not). A line break or nothing at all cannot be written so."""
    if not word or "\n" in word or "\0" in word:
        raise ValueError("a word for a shell cannot be empty or hold a line break")
    return re.sub(r"([^A-Za-z0-9_./:,@+-])", r"\\\1", word)
