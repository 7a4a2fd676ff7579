"""Names that no snapshot has: git and Holdfast keep what they trust there. In every spelling that some disk takes for
the same name; git refuses the same ones."""

import re
from typing import List, Optional, Sequence

_BEGIN = r"(?<![^/\\\0]%s)"
"""A backslash divides names on Windows. It stands after the name: a search for a literal is a hundred times faster."""
_END = r"[ .]*(?::[^/\\\0]*)?(?=[/\\\0]|\Z)"
"""Windows ignores dots and spaces at the end of a name, and takes what follows a colon for a stream of the file."""
_NAMES = [re.compile(name + _BEGIN % name + _END) for name in (r"\.git", r"\.holdfast")]
_SHORT = re.compile(r"(?:\A|[/\\\0])(?:git|holdfa|ho[0-9a-f]{4})~[0-9]+" + _END)
"""What Windows calls them too."""
_UNSEEN = [range(0x200C, 0x2010), range(0x202A, 0x202F), range(0x206A, 0x2070), range(0xFEFF, 0xFF00)]
_NOTHING = {code: None for codes in _UNSEEN for code in codes}
"""Characters that do not count in names on disks of macOS."""


def reserved_path(paths: Sequence[str]) -> Optional[str]:
    """The first path of which a part is such a name, or None. Ten thousand are checked in a few milliseconds."""
    text = "\0".join(paths)
    if not _has_reserved(text.lower()) and (len(text) == _size(text) or not _has_reserved(_folded(paths))):
        return None
    return next(each for each in paths if _has_reserved(each.lower()) or _has_reserved(_folded([each])))


def _has_reserved(text: str) -> bool:
    return any(name.search(text) for name in _NAMES) or ("~" in text and _SHORT.search(text) is not None)


def _folded(paths: Sequence[str]) -> str:
    """Those that are not plain ASCII, as a disk that ignores case and accents' spelling compares them."""
    import unicodedata  # rarely needed

    rare: List[str] = [each for each in paths if len(each) != _size(each)]
    return unicodedata.normalize("NFD", "\0".join(rare).translate(_NOTHING)).casefold()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
