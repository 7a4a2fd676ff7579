"""Names that no longer work, wheels that cannot fit, packages that shadow each other: read from the spec alone.

Each table was compared with what the Python package index has. What is not known is no finding: a line with a marker
for another system, and a name that an index of the user's own may have, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from holdfast.environments.gpu_builds import (
    find_conda_cpu_build,
    find_cpu_build,
    find_cpu_index,
    find_tensorflow_gpu,
    need_of_tensorflow_gpu,
)
from holdfast.environments.spec_findings import (
    CNTK,
    CNTK_VERSIONS,
    Kind,
    Need,
    SpecFinding,
    find_other_pythons,
    is_old_cntk,
    needs_of_wheels,
)
from holdfast.environments.version_ranges import allows
from holdfast.frozen import dataclass, replace
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, is_option
from holdfast.project.problems import Mistake, Severity
from holdfast.project.requirement_lines import RequiredPackage, normalised, parse_package, parse_wheel_name


def find_replacements(spec: EnvironmentSpec, system: str = "linux", wants_gpu: bool = False) -> tuple[SpecFinding, ...]:
    """In the order of the lines. `system` is the target's, as in `sys.platform`; `wants_gpu`: builds for the CPU will
    not do."""
    asked = replace(_asked(spec, system), wants_gpu=wants_gpu)
    found: list[SpecFinding] = []
    for rule in _RULES:
        found += rule(asked)
    going = {(each.file, each.line, each.original) for each in found if each.original and each.replacement is not None}
    found += (each for each in _cpu_builds(asked) if (each.file, each.line, each.original) not in going)
    taken = {(each.file, each.line, each.original) for each in found if each.kind in ("not-needed", "other-system")}
    found += find_other_pythons(spec, list(_needs(asked, taken)))
    order = {each: at for at, each in enumerate(dict.fromkeys(one.line.file for one in asked.lines))}
    found.sort(key=lambda each: (order.get(each.file, -1), each.line))
    if spec.locked:
        return tuple(_by_hand(each) for each in found)
    return tuple(_each_line_once(_each_package_once(found, asked)))


@dataclass(frozen=True)
class _Line:
    """A line of the spec and what it is made of; `is_conda` for a conda package, of which the name alone is known."""

    line: Requirement
    package: RequiredPackage
    is_conda: bool = False

    @property
    def place(self) -> tuple[str, int]:
        return (self.line.file, self.line.line)


@dataclass(frozen=True)
class _Asked:
    """What a spec asks for on one system: packages, options, and whether an index of the user's own is among them."""

    spec: EnvironmentSpec
    system: str
    lines: tuple[_Line, ...]
    options: tuple[Requirement, ...]
    wants_gpu: bool = False

    @property
    def pip(self) -> list[_Line]:
        return [each for each in self.lines if not each.is_conda]

    @property
    def has_other_index(self) -> bool:
        return any(
            each.text.startswith(("--index-url", "--extra-index-url", "--find-links", "--no-index"))
            and not re.search(rf"{_DEFAULT_INDEX}|{_OLD_INDEX}", each.text)
            for each in self.options
        )


def _finding(kind: Kind, line: _Line, sentence: str, remedy: str, replacement: str | None) -> SpecFinding:
    name = line.package.name or line.package.file_name
    return SpecFinding(kind, name, sentence, remedy, "error", *line.place, replacement, line.line.text)


_DEFAULT_INDEX = r"//(?:[^/\s]*@)?pypi(?:\.python)?\.org/"
_OLD_INDEX = r"//(?:[^/\s]*@)?azureml\w*\.azureedge\.net/"


def _asked(spec: EnvironmentSpec, system: str) -> _Asked:
    lines = []
    for each in spec.pip:
        package = Mistake("", "") if is_option(each) else parse_package(each.text)
        if isinstance(package, RequiredPackage) and not _is_for_another(package.marker, system):
            lines.append(_Line(each, package))
    for each in spec.conda:
        found = re.match(r"(?:\S+::)?([A-Za-z0-9_.-]+)", each.text)
        if found:
            lines.append(_Line(each, RequiredPackage(normalised(found[1])), is_conda=True))
    return _Asked(spec, system, tuple(lines), tuple(each for each in spec.pip if is_option(each)))


def _is_for_another(marker: str, system: str) -> bool:
    """Whether the marker says plainly that the line is for another system."""
    found = re.search(r"(?:sys_platform|platform_system|os_name)\s*(==|!=)\s*[\"'](\w+)[\"']", marker)
    if not found or " or " in marker:
        return False
    names = {
        "linux": ("linux", "Linux", "posix"),
        "darwin": ("darwin", "Darwin", "posix"),
        "win32": ("win32", "Windows", "nt"),
    }
    return (found[2] in names.get(system, ())) is (found[1] == "!=")


def _needs(asked: _Asked, taken: set[tuple[str, int, str]]) -> Iterator[Need]:
    """Of all lines that stay, in their order."""
    for each in asked.pip:
        if (*each.place, each.line.text) not in taken:
            yield from needs_of_wheels([(each.line, each.package)])
            need = need_of_tensorflow_gpu(each.line, each.package)
            if need and not each.package.location:
                yield need


def _cntk(asked: _Asked) -> Iterator[SpecFinding]:
    """Wheels at an address that is no more, and versions that the index never had."""
    needs_gpu = any(
        each.package.name == "cntk-gpu"
        or (is_old_cntk(each.package.location) and re.search(r"/GPU", each.package.location, re.IGNORECASE))
        for each in asked.pip
    )
    for each in asked.pip:
        name, specifier = each.package.name, each.package.specifier
        if is_old_cntk(each.package.location):
            name = "cntk-gpu" if needs_gpu else "cntk"
            sentence = "cntk.ai, which had the wheels of CNTK, is no longer there."
        elif name in CNTK and not each.package.location and not asked.has_other_index:
            if any(allows(specifier, version) for version in CNTK_VERSIONS):
                continue
            there = f"{CNTK_VERSIONS[0]} to {CNTK_VERSIONS[-1]}"
            sentence = f"The package index has no `{name}{specifier}`, only {there}."
        else:
            continue
        wanted = f"{name}==2.7"
        yield _finding("gone", each, sentence, f"Write `{wanted}`, with `python=3.6`.", _with_marker(wanted, each))


def _tensorflow(asked: _Asked) -> Iterator[SpecFinding]:
    for each in asked.pip:
        if each.package.name in ("tensorflow-gpu", "tf-nightly-gpu") and not each.package.location:
            yield from find_tensorflow_gpu(asked.spec, each.line, each.package)


def _stand_ins(asked: _Asked) -> Iterator[SpecFinding]:
    """Names on the index that install nothing but an error."""
    for each in asked.pip:
        wanted = _STAND_INS.get(each.package.name)
        if wanted is None or each.package.location:
            continue
        real, asked_for = wanted[1], each.package.specifier
        if real and allows(asked_for, real) and not allows(asked_for, f"{real}.post12"):
            continue
        specifier = "" if re.search(r"\b0\.0\b", each.package.specifier) else each.package.specifier
        text = f"{wanted[0]}{_brackets(each)}{specifier}"
        sentence = f"`{each.package.name}` on the package index refuses to install; the package is `{wanted[0]}`."
        yield _finding("gone", each, sentence, f"Write `{text}`.", _with_marker(text, each))


_STAND_INS = {
    "sklearn": ("scikit-learn", "0.0"),
    "skimage": ("scikit-image", ""),
    "pytorch": ("torch", ""),
}
"""The name to write, and the version that does not refuse: `sklearn==0.0` still installs scikit-learn."""


def _other_names(asked: _Asked) -> Iterator[SpecFinding]:
    if asked.has_other_index:
        return
    for each in asked.pip:
        wanted = _OTHER_NAMES.get(each.package.name)
        if wanted is None or each.package.location:
            continue
        text = f"{wanted}{_brackets(each)}{each.package.specifier}"
        sentence = f"The package index has no `{each.package.name}`; there it is called `{wanted}`."
        yield _finding("other-name", each, sentence, f"Write `{text}`.", _with_marker(text, each))


_OTHER_NAMES = {
    "cv2": "opencv-python",
    "opencv": "opencv-python",
    "py-opencv": "opencv-python",
    "pil": "pillow",
    "yaml": "pyyaml",
    "pytables": "tables",
    "matplotlib-base": "matplotlib",
    "py-xgboost": "xgboost",
    "python-graphviz": "graphviz",
    "tensorflow-base": "tensorflow",
    "keras-gpu": "keras",
    "pytorch-gpu": "torch",
}
"""Names of conda packages and of modules, none of which the index has."""


def _old_product(asked: _Asked) -> Iterator[SpecFinding]:
    remedy = "Remove the line: `azureml.logging` is there in every run."
    for each in asked.lines:
        if each.package.name in _OLD_PRODUCT:
            sentence = f"`{each.package.name}` belongs to the old product, and is not needed."
            severity: Severity = "warning" if each.package.name in _STILL_THERE else "error"
            yield replace(_finding("not-needed", each, sentence, remedy, ""), severity=severity)
    for option in asked.options:
        if re.search(_OLD_INDEX, option.text):
            sentence = "This is the old product's own index, of which nothing is needed."
            remedy = "Remove the line."
        elif re.search(r"//(?:[^/\s]*@)?pypi\.python\.org/", option.text):
            sentence = "This is a former address of the package index, which is asked anyway."
            remedy = "Remove the line."
        else:
            continue
        place = (option.file, option.line)
        yield SpecFinding("not-needed", "", sentence, remedy, "warning", *place, "", option.text)


_STILL_THERE = frozenset(("azure-ml-api-sdk",))
"""On the package index: it made web services of the old product."""
_OLD_PRODUCT = _STILL_THERE | {
    "azureml-requirements",
    "azureml-logging",
    "azureml-base",
    "azureml-api",
    "azureml-history",
}


def _torch_indexes(asked: _Asked) -> Iterator[SpecFinding]:
    """`torch==2.1.0+cu118` is on PyTorch's own index only. One line is enough for all packages of a build."""
    seen: set[str] = set()
    for each in asked.pip:
        build = re.search(r"\+(cu\d+|cpu|rocm[\d.]+|xpu)\b", each.package.specifier)
        is_torch = each.package.name in ("torch", "torchvision", "torchaudio")
        if not build or not is_torch or asked.has_other_index or build[1] in seen:
            continue
        if asked.wants_gpu and build[1] == "cpu":  # that goes
            continue
        seen.add(build[1])
        text = f"--extra-index-url https://download.pytorch.org/whl/{build[1]}"
        sentence = f"The package index has no `{each.package.name}{each.package.specifier}`: builds are PyTorch's own."
        remedy = f"Write above it: `{text}`."
        if each.line.file.endswith(".toml"):
            remedy = f"Add `[[tool.uv.index]]` with the `url` {text.partition(' ')[2]}."
            yield _finding("missing-index", each, sentence, remedy, None)
        else:
            yield SpecFinding("missing-index", each.package.name, sentence, remedy, "error", *each.place, text)


def _other_systems(asked: _Asked) -> Iterator[SpecFinding]:
    for each in asked.pip:
        wheel = None if is_old_cntk(each.package.location) else parse_wheel_name(each.package.file_name)
        if wheel is None or any(_fits(tag, asked.system) for tag in wheel.platforms):
            continue
        tag = wheel.platforms[0]
        other = "Windows" if tag.startswith("win") else "macOS" if tag.startswith("macosx") else "Linux"
        here = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}.get(asked.system, asked.system)
        sentence = f"`{each.package.file_name}` is a wheel for {other}; the target's system is {here}."
        remedy = f"Name the wheel for the target's system, or write `{wheel.name}=={wheel.version}`."
        yield _finding("other-system", each, sentence, remedy, None)


def _fits(tag: str, system: str) -> bool:
    known = {"win": "win32", "macosx": "darwin", "linux": "linux", "manylinux": "linux", "musllinux": "linux"}
    found = re.match(r"(win|macosx|manylinux|musllinux|linux)", tag)
    return not found or known[found[1]] == system


def _shadowed(asked: _Asked) -> Iterator[SpecFinding]:
    by_name: dict[str, list[_Line]] = {}
    for each in asked.lines:
        if not each.package.marker and not is_old_cntk(each.package.location):
            by_name.setdefault(each.package.name, []).append(each)
    for loser, winner in _SHADOWS:
        sentence = f"`{loser}` and `{winner}` write the same files; which one is imported is left to chance."
        for each in by_name.get(loser, []) if winner in by_name else []:
            yield _finding("shadowed", each, sentence, f"Remove `{loser}`.", "")
    builds = sorted(name for name in by_name if re.fullmatch(r"cupy(-cuda\w+|-rocm[\w-]+)?", name))
    if len(builds) > 1:
        sentence = f"{' and '.join(f'`{name}`' for name in builds)} write the same files."
        yield _finding("shadowed", by_name[builds[1]][0], sentence, "Keep the one for the target's CUDA.", None)


_SHADOWS = (
    ("onnxruntime", "onnxruntime-gpu"),
    ("cntk", "cntk-gpu"),
    ("tensorflow-cpu", "tensorflow"),
    ("tensorflow-cpu", "tensorflow-gpu"),
    ("tensorflow", "tensorflow-gpu"),
    ("xgboost-cpu", "xgboost"),
)
"""The first is the build for the CPU, or the plain one."""


def _cpu_builds(asked: _Asked) -> Iterator[SpecFinding]:
    if not asked.wants_gpu:
        return
    for each in asked.lines:
        if each.is_conda:
            yield from find_conda_cpu_build(each.line, each.package.name)
        else:
            yield from find_cpu_build(asked.spec, each.line, each.package)
    for option in asked.options:
        yield from find_cpu_index(option)


_RULES: tuple[Callable[[_Asked], Iterator[SpecFinding]], ...] = (
    _cntk,
    _tensorflow,
    _stand_ins,
    _other_names,
    _old_product,
    _torch_indexes,
    _other_systems,
    _shadowed,
)


def _brackets(line: _Line) -> str:
    return f"[{line.package.extras}]" if line.package.extras else ""


def _with_marker(text: str, line: _Line) -> str:
    return f"{text} ; {line.package.marker}" if line.package.marker else text


def _each_package_once(found: list[SpecFinding], asked: _Asked) -> Iterator[SpecFinding]:
    """A replacement that another line says already, or will say, removes its line: installers refuse a package that
    is asked for twice."""
    changed = {(each.file, each.line, each.original) for each in found if each.replacement is not None}
    said = {
        (each.package.name, each.package.extras, each.package.marker): each.place
        for each in asked.pip
        if (*each.place, each.line.text) not in changed
    }
    for each in found:
        package = parse_package(each.replacement) if each.original and each.replacement else Mistake("", "")
        if isinstance(package, Mistake) or each.kind == "other-python":
            yield each
            continue
        key = (package.name, package.extras, package.marker)
        if key in said and said[key] != (each.file, each.line):
            file, line = said[key]
            remedy = f"Remove the line: `{package.name}` is asked for in {file}:{line}."
            yield replace(each, remedy=remedy, replacement="")
        else:
            said[key] = (each.file, each.line)
            yield each


def _each_line_once(found: Iterable[SpecFinding]) -> Iterator[SpecFinding]:
    """Two findings may be about one line, or both want a Python: only the first is written by `--fix`."""
    taken: set[tuple[str, int, str]] = set()
    for each in found:
        is_new = not each.original and each.replacement is not None
        written = re.sub(r"^(python=).*", r"\1", each.replacement or "")
        target = (each.file, 0, written) if is_new else (each.file, each.line, each.original)
        yield each if each.replacement is None or target not in taken else replace(each, replacement=None)
        taken.add(target)


def _by_hand(found: SpecFinding) -> SpecFinding:
    """A lock is made by a program: writing into it would leave hashes that belong to nothing."""
    remedy = f"{found.remedy} Then make the lock anew."
    return SpecFinding(found.kind, found.package, found.sentence, remedy, found.severity, found.file, found.line)
