"""The package that a project is itself, by the name that its files give it. They are read, never run."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.frozen import dataclass
from holdfast.regular_files import read_regular

_LARGEST = 1 << 20
_SECTIONS = {"pyproject.toml": ("project", "tool.poetry"), "setup.cfg": ("metadata",)}
_SECTION = re.compile(r"^\[([^\[\]\n]{1,100})\][ \t]*(?:#.*)?$", re.MULTILINE)
_NAME = re.compile(r"""^name[ \t]*=[ \t]*["']?([A-Za-z0-9][\w.-]{0,100})""", re.MULTILINE)
_NAME_IN_PROGRAM = re.compile(r"""\bname[ \t]{0,10}=[ \t]{0,10}["']([A-Za-z0-9][\w.-]{0,100})["']""")
_COMPILED = re.compile(
    r"ext_modules|cythonize|CppExtension|CUDAExtension|rust_extensions|mesonpy|scikit_build_core|maturin|skbuild"
)


@dataclass(frozen=True)
class OwnPackage:
    """`name` as an import may have it, in small letters; empty where no file gives it. `is_compiled`: its source alone
    may not be all of it."""

    name: str = ""
    is_compiled: bool = False


def own_package(root: Path) -> OwnPackage:
    texts = {name: _text(root / name) for name in (*_SECTIONS, "setup.py")}
    names = [_declared(texts[name], sections) for name, sections in _SECTIONS.items()]
    found = _NAME_IN_PROGRAM.search(texts["setup.py"])
    name = next((each for each in (*names, found[1] if found else "") if each), "")
    return OwnPackage(
        re.sub(r"[-.]+", "_", name).lower(), any(_COMPILED.search(each) is not None for each in texts.values())
    )


def _declared(text: str, sections: tuple[str, ...]) -> str:
    found = list(_SECTION.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    for section, end in zip(found, ends, strict=False):
        name = _NAME.search(text, section.end(), end) if section[1].strip() in sections else None
        if name is not None:
            return name[1]
    return ""


def _text(path: Path) -> str:
    try:
        return read_regular(path, _LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
