"""Classes that share one comparison, hash and representation do as those of ``attrs.frozen``."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from collc.ir.frozen import frozen

MAKERS: list[Any] = [frozen, attrs.frozen]


def classes(make: Any) -> tuple[Any, Any, Any]:
    """Return a class, one that extends it, and one that is compared by identity."""

    @make
    class Place:
        line: int
        text: str = attrs.field(default="", repr=False)
        span: object = attrs.field(default=None, eq=False)

    @make
    class Named(Place):
        name: str = ""

    @make(eq=False)
    class One:
        line: int

    return Place, Named, One


def told(make: Any) -> list[object]:
    """Return what can be seen of some objects."""
    place, named, one = classes(make)
    objects = [place(1), place(1, "x"), place(1, "", [2]), place(2), named(1), named(1, "", None, "n"), one(1), one(1)]
    shown = [repr(x).replace(make.__module__, "") for x in objects]
    return [shown, [[a == b for b in objects] for a in objects], [[a != b for b in objects] for a in objects]]


def test_objects_show_and_compare_as_those_of_attrs() -> None:
    assert told(frozen) == told(attrs.frozen)


@pytest.mark.parametrize("make", MAKERS)
def test_equal_objects_have_one_hash(make: Any) -> None:
    place, named, _ = classes(make)
    assert len({place(1), place(1, "", span="other"), place(2), named(1), named(1)}) == 3
    with pytest.raises(TypeError):
        hash(place([1]))


@pytest.mark.parametrize("make", MAKERS)
def test_objects_cannot_be_changed_and_have_slots(make: Any) -> None:
    place = classes(make)[0](1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        place.line = 2
    assert not hasattr(place, "__dict__")
    assert attrs.evolve(place, line=3) == type(place)(3)


@pytest.mark.parametrize("make", MAKERS)
def test_own_methods_stay(make: Any) -> None:
    @make
    class Modulo:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Modulo) and self.value % 2 == other.value % 2

        def __hash__(self) -> int:
            return self.value % 2

        def __repr__(self) -> str:
            return "odd" if self.value % 2 else "even"

    assert Modulo(1) == Modulo(3) and len({Modulo(1), Modulo(3)}) == 1 and repr(Modulo(2)) == "even"


@frozen
class Kept:
    """What can be written and read."""

    value: tuple[int, ...]


def test_objects_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept((1, 2)))) == Kept((1, 2))
