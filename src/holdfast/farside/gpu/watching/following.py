"""The file of samples while it grows: each line is read once."""

from holdfast.farside.gpu.watching.samples import Fold, Samples

_PORTION = 1 << 20


class Following:
    """`samples` are what there was when it was last read on."""

    def __init__(self, path: str) -> None:
        self._path, self._fold, self._read = path, Fold(), 0

    def read_on(self) -> None:
        """What cannot be read now may be read the next time."""
        try:
            with open(self._path, "rb") as source:
                source.seek(self._read)
                while True:
                    data = source.read(_PORTION)
                    if not data:
                        return
                    self._read += len(data)
                    self._fold.feed(data)
        except OSError:
            return

    def samples(self) -> Samples:
        return self._fold.samples()

    def forget(self, before: float) -> None:
        """Looks of an earlier time are not asked for any more."""
        self._fold.forget(before)
