"""`dataclass(frozen=True)` for the values that cross seams, made without generating code.

The standard library writes and compiles half a dozen functions for each class while its module is imported: a quarter
of a short command's time, for some sixty classes of which it uses a few. Here all classes share a handful of functions.
Values behave the same, and the standard library's `fields`, `asdict` and `replace` accept them. To type checkers they
are dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

__all__ = ["asdict", "dataclass", "field", "field_names", "replace", "required_names"]

_Class = TypeVar("_Class", bound=type)
_SHAPE = "__holdfast_shape__"


class _Factory:
    """Stands in a class's body for a default that is made anew for each value."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class _Shape:
    """The fields of a class in their order, the defaults of some, and what makes those of others."""

    def __init__(self, names: tuple[str, ...], given: Mapping[str, Any]) -> None:
        self.names = names
        self.defaults = {name: each for name, each in given.items() if not isinstance(each, _Factory)}
        self.factories = tuple((name, each.make) for name, each in given.items() if isinstance(each, _Factory))


def _dataclass(*, frozen: bool) -> Callable[[_Class], _Class]:
    """As the standard library's, for classes that inherit no fields and have no `__post_init__`."""
    if not frozen:
        raise TypeError("only frozen classes are made here; for others there is the standard library")
    return _made


def _field(*, default_factory: Callable[[], Any]) -> Any:
    return _Factory(default_factory)


def _replace(value: Any, /, **changes: Any) -> Any:
    names = _shape(value).names
    return type(value)(**{name: getattr(value, name) for name in names} | changes)


def _asdict(value: Any) -> dict[str, Any]:
    """Values inside, also in lists, tuples and mappings, become dictionaries too."""
    return {name: _plain(getattr(value, name)) for name in _shape(value).names}


def field_names(value: Any) -> tuple[str, ...]:
    """The fields of a value or its class, in their order."""
    return _shape(value).names


def required_names(value: Any) -> tuple[str, ...]:
    """The fields without a default."""
    shape = _shape(value)
    optional = {*shape.defaults, *(name for name, _ in shape.factories)}
    return tuple(name for name in shape.names if name not in optional)


def _made(cls: _Class) -> _Class:
    own = vars(cls)
    names = tuple(name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar"))
    shape = _Shape(names, {name: own[name] for name in names if name in own})
    for name, _ in shape.factories:
        delattr(cls, name)
    methods = {
        _SHAPE: shape,
        "__init__": _init(shape),
        "__match_args__": names,
        "__dataclass_fields__": _Fields(),
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
    }
    if "__repr__" not in own:
        methods["__repr__"] = _repr
    if "__eq__" not in own:
        methods |= {"__eq__": _eq, "__hash__": _hash}
    for name, each in methods.items():
        setattr(cls, name, each)
    return cls


def _init(shape: _Shape) -> Callable[..., None]:
    names, defaults, factories, count = shape.names, shape.defaults, shape.factories, len(shape.names)
    left: dict[int, frozenset[str]] = {}  # names allowed beside so many positional arguments; made when first needed

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 - it becomes that of the class
        own = self.__dict__
        if defaults:
            own.update(defaults)
        if given:
            own.update(zip(names, given))  # noqa: B905 - too many are found below
        if named:
            own.update(named)
            allowed = left.get(len(given))
            if allowed is None:
                allowed = left[len(given)] = frozenset(names[len(given) :])
            if not allowed.issuperset(named):
                raise _wrong_arguments(type(self), shape, given, named)
        for name, make in factories:
            if name not in own:
                own[name] = make()
        if len(own) != count or len(given) > count:
            raise _wrong_arguments(type(self), shape, given, named)

    return __init__


def _wrong_arguments(cls: type, shape: _Shape, given: tuple[Any, ...], named: Mapping[str, Any]) -> TypeError:
    """In Python's own words, which count `self`."""
    head, most = f"{cls.__qualname__}.__init__()", len(shape.names) + 1
    for name in named:
        if name not in shape.names:
            return TypeError(f"{head} got an unexpected keyword argument {name!r}")
        if name in shape.names[: len(given)]:
            return TypeError(f"{head} got multiple values for argument {name!r}")
    optional = {*shape.defaults, *(name for name, _ in shape.factories)}
    if len(given) >= most:
        takes = f"from {most - len(optional)} to {most}" if optional else f"{most}"
        plural = "" if takes == "1" else "s"
        return TypeError(f"{head} takes {takes} positional argument{plural} but {len(given) + 1} were given")
    missing = [repr(each) for each in shape.names[len(given) :] if each not in named and each not in optional]
    plural = "" if len(missing) == 1 else "s"
    return TypeError(f"{head} missing {len(missing)} required positional argument{plural}: {_listed(missing)}")


def _listed(words: list[str]) -> str:
    if len(words) < 3:
        return " and ".join(words)
    return f"{', '.join(words[:-1])}, and {words[-1]}"


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shape(self).names)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: Any) -> bool:
    return _contents(self) == _contents(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_contents(self))


def _contents(value: Any) -> tuple[Any, ...]:
    own = value.__dict__
    return tuple(own[name] for name in _shape(value).names)


def _shape(value: Any) -> _Shape:
    found: _Shape = getattr(value, _SHAPE)
    return found


def _plain(each: Any) -> Any:
    if hasattr(each, _SHAPE):
        return _asdict(each)
    if isinstance(each, tuple) and hasattr(each, "_fields"):
        return type(each)(*map(_plain, each))
    if isinstance(each, (list, tuple)):
        return type(each)(map(_plain, each))
    if isinstance(each, dict):
        return {_plain(key): _plain(inner) for key, inner in each.items()}
    return each


def _refuse_to_set(_self: Any, name: str, _value: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Fields:
    """What the standard library's functions look at; made when one of them does."""

    def __get__(self, _instance: object, cls: type) -> Any:
        import dataclasses

        shape = _shape(cls)
        like = {name: dataclasses.field(default_factory=make) for name, make in shape.factories} | dict(shape.defaults)
        rows = [(name, cls.__annotations__[name], *((like[name],) if name in like else ())) for name in shape.names]
        twin: Any = dataclasses.make_dataclass(cls.__name__, rows, init=False, repr=False, eq=False)
        found = {each.name: each for each in dataclasses.fields(twin)}
        type.__setattr__(cls, "__dataclass_fields__", found)
        return found


if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, replace
else:
    asdict, dataclass, field, replace = _asdict, _dataclass, _field, _replace
