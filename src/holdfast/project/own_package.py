"""The package that a project is itself, by the name that its files give it. They are read, never run."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.frozen import dataclass
from holdfast.regular_files import text_if_there

_LARGEST = 1 << 20
_SECTIONS = {"pyproject.toml": ("project", "tool.poetry"), "setup.cfg": ("metadata",)}
_SECTION = r"^\[([^\[\]\n]{1,100})\][ \t]*(?:#.*)?$"
_NAME = r"""^name[ \t]*=[ \t]*["']?([A-Za-z0-9][\w.-]{0,100})"""
_NAME_IN_PROGRAM = r"""\bname[ \t]{0,10}=[ \t]{0,10}["']([A-Za-z0-9][\w.-]{0,100})["']"""
_COMPILED = (
    r"ext_modules|cythonize|CppExtension|CUDAExtension|rust_extensions|mesonpy|scikit_build_core|maturin|skbuild"
)


@dataclass(frozen=True)
class OwnPackage:
    """`name` as an import may have it, in small letters; empty where no file gives it. `is_compiled`: its source alone
    may not be all of it."""

    name: str = ""
    is_compiled: bool = False


def own_package(root: Path) -> OwnPackage:
    texts = {name: text_if_there(root / name, _LARGEST) for name in (*_SECTIONS, "setup.py")}
    if not any(texts.values()):
        return OwnPackage()  # as for most folders: no pattern is compiled
    names = [_declared(texts[name], sections) for name, sections in _SECTIONS.items()]
    found = re.search(_NAME_IN_PROGRAM, texts["setup.py"])
    name = next((each for each in (*names, found[1] if found else "") if each), "")
    is_compiled = any(re.search(_COMPILED, each) is not None for each in texts.values())
    return OwnPackage(re.sub(r"[-.]+", "_", name).lower(), is_compiled)


def _declared(text: str, sections: tuple[str, ...]) -> str:
    found, wanted = list(re.finditer(_SECTION, text, re.MULTILINE)), re.compile(_NAME, re.MULTILINE)
    ends = [each.start() for each in found[1:]] + [len(text)]
    for section, end in zip(found, ends, strict=False):
        name = wanted.search(text, section.end(), end) if section[1].strip() in sections else None
        if name is not None:
            return name[1]
    return ""
