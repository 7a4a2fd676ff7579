"""`setup.cfg` and `setup.py`: what they say of packages, as far as it is written there. They are read, never run."""

from __future__ import annotations

import ast
import configparser
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.frozen import dataclass, field
from holdfast.project.documents import BYTE_ORDER_MARK, MAXIMUM_BYTES
from holdfast.regular_files import text_if_there

_NAMES = ("install_requires", "extras_require", "python_requires", "name", "ext_modules")


@dataclass(frozen=True)
class SetupWishes:
    """`is_whole` False: the file makes them by a program, so that only a build of the project can say them. `files` are
    requirements files beside it that stand for `requires`."""

    name: str = ""
    requires: tuple[str, ...] = ()
    extras: Mapping[str, list[str]] = field(default_factory=dict)
    python: str = ""
    files: tuple[str, ...] = ()
    is_whole: bool = True
    is_compiled: bool = False


def read_wishes(folder: Path) -> SetupWishes:
    """Of the `setup.cfg` and the `setup.py` in the folder; what the first says counts. Raises ValueError for a
    `setup.cfg` that is none."""
    declared = _declared(_text(folder / "setup.cfg"))
    program = _programmed(_text(folder / "setup.py"))
    if not (declared.requires or declared.files or declared.extras):
        return program
    return SetupWishes(
        declared.name or program.name,
        *(declared.requires, declared.extras or program.extras, declared.python or program.python),
        *(declared.files, True, program.is_compiled),
    )


def _text(path: Path) -> str:
    return text_if_there(path, MAXIMUM_BYTES).removeprefix(BYTE_ORDER_MARK)


def _declared(text: str) -> SetupWishes:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error).replace("\n", " ")) from None
    options = dict(parser["options"]) if "options" in parser else {}
    extras = parser["options.extras_require"].items() if "options.extras_require" in parser else ()
    name = parser["metadata"].get("name", "") if "metadata" in parser else ""
    written = options.get("install_requires", "")
    is_file = written.strip().startswith("file:")
    files = tuple(each.strip() for each in written.strip()[len("file:") :].split(",")) if is_file else ()
    requires = () if is_file else tuple(_lines(written))
    return SetupWishes(
        name, requires, {key: list(_lines(lines)) for key, lines in extras}, options.get("python_requires", ""), files
    )


def _lines(text: str) -> Iterator[str]:
    """As setuptools reads them: one on each line, or several with `;` between them on the first."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _programmed(text: str) -> SetupWishes:
    if not text:
        return SetupWishes()
    try:
        with warnings.catch_warnings():  # of a file that is only read
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        call = next((each for each in ast.walk(tree) if isinstance(each, ast.Call) and _is_setup(each)), None)
        return SetupWishes(is_whole=False) if call is None else _of_call(call, _constants(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SetupWishes(is_whole=False)


def _is_setup(call: ast.Call) -> bool:
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name == "setup"


def _of_call(call: ast.Call, constants: Mapping[str, ast.expr]) -> SetupWishes:
    found: dict[str, object] = {}
    values = _Values(constants)
    for keyword in call.keywords:
        if keyword.arg is None:
            return SetupWishes(is_whole=False)
        if keyword.arg in _NAMES:
            found[keyword.arg] = values.of(keyword.value)
    requires, extras = found.get("install_requires", ()), found.get("extras_require", {})
    is_compiled = "ext_modules" in found
    if isinstance(requires, str):
        requires = list(_lines(requires))
    listed, by_extra = _texts(requires), _extras(extras)
    if listed is None or by_extra is None:
        return SetupWishes(is_whole=False, is_compiled=is_compiled)
    python, name = (str(found.get(key) or "") for key in ("python_requires", "name"))
    return SetupWishes(name, tuple(listed), by_extra, python, is_compiled=is_compiled)


def _texts(value: object) -> list[str] | None:
    """None for what is no list of texts."""
    is_list = isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    return list(value) if is_list and isinstance(value, (list, tuple)) else None


def _extras(value: object) -> dict[str, list[str]] | None:
    if not isinstance(value, dict):
        return None
    lists = {str(key): [lines] if isinstance(lines, str) else _texts(lines) for key, lines in value.items()}
    whole = {key: lines for key, lines in lists.items() if lines is not None}
    return whole if len(whole) == len(lists) else None


def _constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Names that the file gives a value once, at its top, and that nothing there changes."""
    named = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)]
    changed = [
        each.func.value.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and isinstance(each.func.value, ast.Name)
    ]
    changed += [
        each.value.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and not isinstance(each.ctx, ast.Load)
    ]
    times: dict[str, int] = {}
    for name in (*(each.id for each in named), *changed):
        times[name] = times.get(name, 0) + 1
    found = {}
    for each in tree.body:
        target = each.targets[0] if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
        if isinstance(each, ast.Assign) and isinstance(target, ast.Name) and times.get(target.id) == 1:
            found[target.id] = each.value
    return found


class _Values:
    """What expressions of the file mean; None for what only a program knows. Each name is looked up once, and what
    grows too long is not followed."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants
        self._known: dict[str, object] = {}

    def of(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            return self._of_name(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.of(node.left), self.of(node.right)
            if not isinstance(left, list) or not isinstance(right, list) or len(left) + len(right) > _LONGEST:
                return None
            return [*left, *right]
        if isinstance(node, ast.Dict):
            keys = [None if each is None else self.of(each) for each in node.keys]
            values = [self.of(each) for each in node.values]
            return None if None in keys or None in values else dict(zip(map(str, keys), values, strict=True))
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, RecursionError, MemoryError):
            return None

    def _of_name(self, name: str) -> object:
        if name not in self._known:
            self._known[name] = None  # while it is looked up: it may name itself
            self._known[name] = self.of(self._constants[name]) if name in self._constants else None
        return self._known[name]


_LONGEST = 2000
