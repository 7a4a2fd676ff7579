"""`environment check --fix`: findings' replacements written into the project's files by surgery on the text.

Everything else stays as it was, byte for byte, with comments, indentation and line ends. Each new text is read again
and compared with what was meant before anything is written; then all files are written, or none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast.environments import conda_fixes, requirements_fixes, toml_fixes
from holdfast.environments.findings import Finding
from holdfast.errors import ConfigurationError, StorageError
from holdfast.project.documents import BYTE_ORDER_MARK, read_text
from holdfast.project.problems import Problem


def apply_fixes(root: Path, findings: Iterable[Finding]) -> tuple[str, ...]:
    """The files that were changed. Findings without a replacement are left to a person.

    Raises ConfigurationError where a line is no longer what the finding says, or cannot be changed without touching
    others, and StorageError where a file cannot be written; then no file is changed.
    """
    by_file: dict[str, list[Finding]] = {}
    for each in findings:
        if each.replacement is not None and each not in by_file.setdefault(each.file, []):
            by_file[each.file].append(each)
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    for file, wanted in by_file.items():
        text, unreadable = read_text(root, file)
        problems += unreadable
        if text is None:
            continue
        mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        changed = _changed(text.removeprefix(BYTE_ORDER_MARK), file, wanted)
        if isinstance(changed, str):
            texts[file] = (mark + changed).encode("utf-8")
        else:
            problems.append(_by_hand(changed))
    if problems:
        raise ConfigurationError(problems)
    _write_all(root, texts)
    return tuple(texts)


def _changed(text: str, file: str, findings: list[Finding]) -> str | Finding:
    """The new text, or the finding that could not be applied."""
    if file.endswith((".yml", ".yaml")):
        return conda_fixes.changed(text, findings)
    if file.endswith(".toml"):
        return toml_fixes.changed(text, findings)
    return requirements_fixes.changed(text, findings, is_version_file=file.endswith(".python-version"))


def _by_hand(finding: Finding) -> Problem:
    message = "the line is not what was found, or cannot be changed without touching others"
    return Problem(finding.file, finding.line, "", message, f"By hand: {finding.remedy}")


def _write_all(root: Path, texts: Mapping[str, bytes]) -> None:
    """New files beside the old ones first: nothing is replaced while one could still not be written."""
    beside = {file: (root / file).with_name(f".{Path(file).name}.{os.getpid()}.new") for file in texts}
    before: dict[str, bytes] = {}
    file = ""
    try:
        for file, content in texts.items():
            beside[file].write_bytes(content)
            beside[file].chmod(stat.S_IMODE((root / file).stat().st_mode))
        for file in texts:
            old = (root / file).read_bytes()
            beside[file].replace(root / file)
            before[file] = old
    except OSError as error:
        for each, content in before.items():
            (root / each).write_bytes(content)
        for path in beside.values():
            path.unlink(missing_ok=True)
        remedy = "Check its permissions and the disk. Nothing was changed."
        raise StorageError(f"`{file}` cannot be written: {error.strerror}.", remedy) from error
