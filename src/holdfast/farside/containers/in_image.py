"""The inside of an image as a place where an environment is used: its Pythons, its C library, and what was brought."""

import os
from typing import Any, Dict, List, Optional

from holdfast.farside.containers.docker import Docker
from holdfast.farside.containers.images import ANY, Image, find
from holdfast.farside.containers.probing import is_of_environment
from holdfast.farside.environments import interpreters
from holdfast.farside.environments.interpreters import Interpreter
from holdfast.farside.environments.place import CONDA, Place, is_of
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.layout import Home
from holdfast.farside.machine.pythons import version_by_place


class InImage(Place):
    """Environments made with a Python of the image are for this image alone; those with one that uv brought, or with
    one out of conda's channels, for all images and machines of the same platform."""

    def __init__(self, image: Image, home: Home) -> None:
        self.home, self.image = home, image
        self.platform = image.platform
        self.tag = image.short
        self.words = "the image `%s`" % image.name
        if self.platform != platform_name():
            self.cache = "uv-" + self.platform

    def pythons(self) -> List[Interpreter]:
        return [Interpreter(each.path, each.version) for each in self.image.pythons] + self.brought()

    def choose(self, pin: str, found: List[Interpreter]) -> Optional[Interpreter]:
        """The image's own where one fits: it is what the image was made for."""
        ours = [each for each in found if not self._is_brought(each.path)]
        return interpreters.choose(pin, ours) or interpreters.choose(pin, found)

    def brought(self) -> List[Interpreter]:
        known = [(path, version_by_place(path)) for path in interpreters.brought(self.home, self.image.build_name)]
        return [Interpreter(path, version) for path, version in known if version]

    def own(self, path: str) -> Optional[Interpreter]:
        """The image's first, or the one that is named; where it has none, the newest that was brought."""
        wanted = self.image.python(path)
        for each in self.image.pythons:
            if each.path == wanted:
                return Interpreter(each.path, each.version)
        return interpreters.choose("3", self.brought()) if self.has_none(path) else None

    def has_none(self, path: str) -> bool:
        return path in ANY and not self.image.pythons

    def active(self, path: str) -> List[Interpreter]:
        return []  # all that the image has are known

    def identity(self, path: str) -> str:
        if self._is_brought(path):
            return os.path.realpath(path)
        real = [each.real for each in self.image.pythons if each.path == path]
        return "%s:%s" % (self.image.id, path if is_of_environment(path) else (real + [path])[0])

    def noted_as(self, pin: str, path: str) -> str:
        """Which Python a pin becomes depends on the image."""
        return "%s\n%s" % (self.image.id, pin or self.image.python(path) or path)

    def about(self, interpreter: str) -> Dict[str, str]:
        if interpreter == CONDA or self._is_brought(interpreter):
            return {}
        return {"image": self.image.id, "image_name": self.image.name}

    def can_use(self, mark: Dict[str, Any]) -> bool:
        if not is_of(mark, self.tag):
            return False
        if mark.get("image"):
            return bool(mark["image"] == self.image.id)
        interpreter = str(mark.get("interpreter", ""))
        return interpreter == CONDA or self._is_brought(interpreter)

    def _is_brought(self, path: str) -> bool:
        return path.startswith(self.home.pythons() + os.sep)


def place_asked(home: Home, container: Optional[Dict[str, Any]]) -> Place:
    """Of a question about a container, or about the machine. An image that is not here is not fetched."""
    if container is None:
        return Place(home)
    return InImage(find(Docker(str(container["program"])), container, home, None), home)
