"""The inside of an image as a place for environments: which Python, and what was built for whom."""

from __future__ import annotations

from pathlib import Path

from holdfast.farside.containers.images import Image, InImage, Python
from holdfast.farside.environments.place import CONDA, BuildPlace, Interpreter
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.system.layout import Home
from unit.farside.programs import program

OWN = Python("/usr/bin/python3", "3.11.2", "/usr/bin/python3.11")


def image(*pythons: Python, libc: str = "glibc2.36", number: str = "ab") -> Image:
    platform = "linux-x86_64-" + libc
    return Image("sha256:" + number * 32, "debian", "x86_64", platform, {}, pythons, "", "")


def bring(home: Home, name: str) -> str:
    return str(program(Path(home.pythons()) / name / "bin" / "python3"))


def path(found: Interpreter | None) -> str | None:
    return found.path if found else None


def test_the_images_own_python_is_taken_where_it_fits_and_what_was_brought_where_not(home):
    newer = bring(home, "cpython-3.12.4-linux-x86_64-gnu")
    place = InImage(image(OWN), home)
    found = place.pythons()

    chosen = [path(place.choose(pin, found)) for pin in (">=3.9", "3.12", "3.8")]
    assert chosen == ["/usr/bin/python3", newer, None]


def test_a_python_that_was_brought_for_another_c_library_is_none(home):
    bring(home, "cpython-3.12.4-linux-x86_64-gnu")
    musl = bring(home, "cpython-3.12.4-linux-x86_64-musl")
    bring(home, "cpython-3.12.4-linux-aarch64-musl")

    assert [each.path for each in InImage(image(libc="musl"), home).pythons()] == [musl]


def test_without_a_pin_it_is_the_images_own_then_what_was_brought(home):
    full, bare = InImage(image(OWN), home), InImage(image(), home)
    assert path(full.own("")) == path(full.own("python3")) == "/usr/bin/python3"
    assert bare.own("") is None
    assert bare.has_none("python3")
    brought = bring(home, "cpython-3.12.4-linux-x86_64-gnu")
    assert path(bare.own("")) == brought
    assert bare.own("/opt/python") is None, "a named Python is asked itself"
    assert not bare.has_none("/opt/python")


def test_an_environment_with_the_images_python_is_for_that_image_alone(home):
    one, other = InImage(image(OWN), home), InImage(image(OWN, number="cd"), home)

    assert one.identity(OWN.path) != other.identity(OWN.path)
    mark = {"interpreter": OWN.path, "compiled": [], "place": one.tag, **one.about(OWN.path)}
    assert one.can_use(mark)
    assert not other.can_use(mark)
    assert not BuildPlace(home).can_use(mark)


def test_one_with_a_brought_python_is_for_all_of_the_same_platform(home):
    brought = bring(home, "cpython-3.12.4-linux-x86_64-gnu")
    one, other, here = InImage(image(OWN), home), InImage(image(), home), BuildPlace(home)

    assert one.identity(brought) == other.identity(brought) == here.identity(brought)
    mark = {"interpreter": brought, "compiled": [], "place": one.tag, **one.about(brought)}
    assert one.can_use(mark) and other.can_use(mark) and here.can_use(mark)
    assert one.can_use({"interpreter": CONDA, "compiled": [], "place": ""})


def test_what_was_compiled_somewhere_stays_there(home):
    brought = bring(home, "cpython-3.12.4-linux-x86_64-gnu")
    one, other, here = InImage(image(OWN), home), InImage(image(number="cd"), home), BuildPlace(home)

    mark = {"interpreter": brought, "compiled": ["psycopg2"], "place": one.tag}
    assert [each.can_use(mark) for each in (one, other, here)] == [True, False, False]
    mark["place"] = ""
    assert [each.can_use(mark) for each in (one, here)] == [False, True]


def test_what_was_made_with_a_python_of_the_machine_is_not_for_a_container(home):
    mark = {"interpreter": "/usr/bin/python3", "compiled": [], "place": ""}
    assert BuildPlace(home).can_use(mark)
    assert not InImage(image(OWN), home).can_use(mark)


def test_notes_tell_images_apart_and_not_how_a_python_was_named(home):
    one, other = InImage(image(OWN), home), InImage(image(OWN, number="cd"), home)
    assert one.noted_as("3.11", "") != other.noted_as("3.11", "")
    assert one.noted_as("", "") == one.noted_as("", "python3") == one.noted_as("", "/usr/bin/python3")


def test_a_cache_is_shared_with_the_machine_where_compiled_packages_would_work(home):
    other = InImage(image(libc="glibc2.17"), home)
    assert other.cache == "uv-linux-x86_64-glibc2.17"
    same = image()._replace(platform=platform_name())
    assert InImage(same, home).cache == BuildPlace(home).cache == "uv"
