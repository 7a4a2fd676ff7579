"""Random folders with random ignore files: few names and many shapes of patterns, so that they meet."""

from __future__ import annotations

import random
from pathlib import Path

NAMES = r"a|b|ab|abc|b.c|x.py|build|a b|#a|!b|A1|[a]|é|lib|a\b| "
SHAPES = (
    r"a|b|*|**|?|a*|*b|*.py|*.c|a?|??|[ab]|[!a]|[^a]*|[a-c]*|[]a]|[a-]b|[[:alpha:]]|[[:upper:]]*|[[:nope:]]|[a|"
    r"build|lib|a b|a\ b|\#a|\!b|#a|\[a\]|é|[[:digit:]a]|[\]a]|a\|***|a**|b.[c-d]|[!a-b]c|[--b]|a\\b|[[:a]|"
    r"?\b|x.py|*b*|*?*b|*a*b*c|**"
)
PARTS, GLOBS = NAMES.split("|"), SHAPES.split("|")


def random_pattern(chance: random.Random) -> str:
    text = "/".join(chance.choice(GLOBS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3, 5])))
    if chance.random() < 0.2:
        text = "/" + text
    if chance.random() < 0.3:
        text += "/"
    if chance.random() < 0.1:
        text += chance.choice([" ", "  ", "\\ ", "\r"])
    return ("!" if chance.random() < 0.35 else "") + text


def random_ignore_file(chance: random.Random) -> str:
    lines = [random_pattern(chance) for _ in range(chance.randint(1, 5))]
    return "\n".join(lines) + chance.choice(["", "\n", "\n\n"])


def make_tree(folder: Path, chance: random.Random, depth: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    if chance.random() < 0.4:
        (folder / ".gitignore").write_text(random_ignore_file(chance), newline="")
    for name in chance.sample(PARTS, chance.randint(2, 6)):
        if depth < 3 and chance.random() < 0.45:
            make_tree(folder / name, chance, depth + 1)
        elif chance.random() < 0.1:
            (folder / name).symlink_to(".")
        else:
            (folder / name).write_text("")
