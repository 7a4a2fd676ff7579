"""What every row gets: the installations, a temporary folder, how often to repeat, and where to report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import measuring
from children import Place, make_place
from measuring import Contender, Figures
from peers import OURS, Tool

QUICK_ROUNDS = 3


@dataclass(frozen=True)
class Session:
    """`repeat` is what `--repeat` said, if anything; `quick` asks for small data and few rounds."""

    scratch: Path
    tools: Mapping[str, Tool]
    repeat: int | None = None
    quick: bool = False
    say: Callable[[str], None] = lambda text: None

    def place(self, name: str, tool: str = OURS) -> Place:
        """A folder of its own for a contender. The same name gives the same place."""
        return make_place(self.scratch, name, self.tools[tool])

    def fresh_place(self, name: str, tool: str = OURS) -> Place:
        """Another folder of its own each time."""
        number = len(list(self.scratch.glob(f"{name}-*")))
        return self.place(f"{name}-{number}", tool)

    def rounds(self, usual: int) -> int:
        if self.repeat is not None:
            return self.repeat
        return min(usual, QUICK_ROUNDS) if self.quick else usual

    def amount(self, usual: int) -> int:
        """How much data: a twentieth of it with `--quick`."""
        return max(1, usual // 20) if self.quick else usual

    def compare(self, contenders: Sequence[Contender], usual: int, warm_up: int = 1) -> dict[str, Figures]:
        return measuring.interleaved(contenders, self.rounds(usual), warm_up, self.say)
