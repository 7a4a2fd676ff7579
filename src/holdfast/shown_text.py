"""Text for people: harmless on a terminal, and quoted where it may be pasted. Both sides do it in the same way."""

from __future__ import annotations

from holdfast.farside.system.harmless import HARMFUL as HARMFUL
from holdfast.farside.system.harmless import HARMFUL_IN_LINES as HARMFUL_IN_LINES
from holdfast.farside.system.harmless import is_harmless as is_harmless
from holdfast.farside.system.harmless import one_line as one_line
from holdfast.farside.system.harmless import pasted as pasted
