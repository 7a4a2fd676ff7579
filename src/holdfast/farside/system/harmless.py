"""Text of others on its way to people: nothing in it steers a terminal, hides, or is more than one word for a shell."""

import os
import re

_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters and signs that show nothing, and count as printable all the same."""
_BLANKS = frozenset(_BLANK).union(map(chr, range(0xE0100, 0xE01F0)))  # these stand for variants of ideographs
HARMFUL_IN_LINES = (
    "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f"  # controls: ESC, CSI, OSC
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"  # change the order in which text is shown
    "\\u2028\\u2029"  # line breaks
    "\\xad\\u180e\\u200b\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff0-\\ufffb"  # invisible
    "\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
    "\\ud800-\\udfff" + _BLANK + "]"  # bytes that are not UTF-8
    # What shapes the letter or emoji before it is none of these: U+180B-180D, U+180F, U+200C, U+200D, U+FE00-FE0F.
)
HARMFUL = "[\\n" + HARMFUL_IN_LINES[1:]
"""One more harms on one line: the line break."""
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SAFE = r"[A-Za-z0-9_@%%+:,./-][A-Za-z0-9_@%%+=:,./%s-]*\Z" % ("\\\\" if os.name == "nt" else "")


def one_line(text: str) -> str:
    """`text` on one line: characters that would break it, steer a terminal or stay hidden are shown escaped."""
    if _is_plain(text):  # mostly; the pattern is made when it is needed
        return text
    return re.sub(HARMFUL, lambda found: _NAMED.get(found[0]) or _escaped(found[0]), text)


def is_harmless(text: str) -> bool:
    """Whether `one_line` leaves it as it is."""
    return _is_plain(text) or re.search(HARMFUL, text) is None


def pasted(word: str) -> str:
    """One word of a command that a person may paste into a shell: quoted where a shell would read more than letters.
    Characters that must not be shown stand in `$'…'`, as bash, zsh and ksh read them."""
    if re.match(_SAFE, word):
        return word
    if is_harmless(word):
        return "'%s'" % word.replace("'", "'\"'\"'")
    return "$'%s'" % re.sub(HARMFUL, _bytes, word.replace("\\", "\\\\").replace("'", "\\'"))


def _is_plain(text: str) -> bool:
    return text.isprintable() and _BLANKS.isdisjoint(text)


def _escaped(character: str) -> str:
    number = ord(character)
    return ("\\x%02x" if number < 0x100 else "\\u%04x" if number < 0x10000 else "\\U%08x") % number


def _bytes(found: "re.Match[str]") -> str:
    """Three octal digits for each byte: what follows cannot be read as one more."""
    character = found[0]
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join("\\%03o" % byte for byte in character.encode("utf-8", errors))
