"""Classes that share one comparison, hash and representation do as those of ``attrs.frozen``."""

from __future__ import annotations

import inspect
import pickle
from functools import cached_property
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


@pytest.mark.parametrize("make", MAKERS)
def test_objects_with_a_field_alone_by_keyword(make: Any) -> None:
    @make(kw_only=True)
    class Node:
        span: object = attrs.field(default=None, eq=False)

    @make
    class Pair(Node):
        first: int
        _second: int = 2

    assert Pair(1) == Pair(1, second=2, span="other") != Pair(1, 3) and Pair.__match_args__ == ("first", "_second")
    with pytest.raises(TypeError):
        Pair(1, 2, "a place")
    with pytest.raises(TypeError, match="first"):
        Pair()


def test_classes_tell_the_same_of_themselves() -> None:
    for ours, theirs in zip(classes(frozen), classes(attrs.frozen), strict=True):
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
        assert ours.__slots__ == theirs.__slots__ and ours.__match_args__ == theirs.__match_args__
        assert ours.__qualname__ == theirs.__qualname__ and attrs.has(ours)
        names = ("name", "default", "type", "kw_only", "repr", "inherited", "alias")
        assert [[getattr(f, n) for n in names] for f in attrs.fields(ours)] == [
            [getattr(f, n) for n in names] for f in attrs.fields(theirs)
        ]


@pytest.mark.parametrize("make", MAKERS)
def test_what_needs_attrs_works(make: Any) -> None:
    made = []

    @make
    class Base:
        value: int

        def double(self) -> int:
            return 2 * self.value

    @make
    class Checked(Base):
        def __attrs_post_init__(self) -> None:
            made.append(self.value)

        def double(self) -> int:
            return super().double() + 1

        @cached_property
        def kept(self) -> list[int]:
            return [self.value]

    this = Checked(3)
    assert made == [3] and this.double() == 7 and this.kept is this.kept and attrs.evolve(this, value=4).double() == 9


@pytest.mark.parametrize("make", MAKERS)
def test_attrs_extends_a_class(make: Any) -> None:
    place = classes(make)[0]

    @attrs.frozen
    class Long(place):  # type: ignore[misc, valid-type]  # a class that a function made
        length: int = 0

    assert Long(1, length=2) == Long(1, length=2) != Long(2) and [f.name for f in attrs.fields(Long)][-1] == "length"


def numbers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


@pytest.mark.parametrize("make", MAKERS)
def test_options_of_fields(make: Any) -> None:
    """Converters, factories, metadata and a check at the end, in a class and one that extends it."""
    checked = []

    @make
    class Base:
        rows: tuple[int, ...] = attrs.field(converter=numbers, metadata={"help": "the rows"})
        found: dict[str, int] = attrs.field(factory=dict, eq=False, repr=False)
        sizes: tuple[int, ...] = attrs.field(factory=lambda: ["4"], converter=numbers, kw_only=True)

        def __attrs_post_init__(self) -> None:
            checked.append(self.rows)

    @make
    class Long(Base):
        length: int = 3

        @cached_property
        def total(self) -> int:
            return sum(self.rows) + self.length

    one, other = Base(["1", 2]), Long([5], sizes=["6"], length=1)
    assert one.rows == (1, 2) and one.sizes == (4,) and one.found == {} and one.found is not Base([1]).found
    assert (other.sizes, other.total, other.found) == ((6,), 6, {}) and checked[:2] == [(1, 2), (5,)]
    assert attrs.evolve(other, rows=["7"]).total == 8 and attrs.evolve(one, found={"a": 1}) == one
    assert [(f.name, f.inherited, f.kw_only, dict(f.metadata)) for f in attrs.fields(Long)] == [
        ("rows", True, False, {"help": "the rows"}), ("found", True, False, {}), ("sizes", True, True, {}),
        ("length", False, False, {}),
    ]  # fmt: skip
    assert attrs.fields(Long).length.default == 3 and not hasattr(attrs.fields(Long), "width")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        other.total = 3
    with pytest.raises(TypeError):
        Base()


@pytest.mark.parametrize("make", MAKERS)
def test_values_that_depend_on_others_and_validators(make: Any) -> None:
    @make
    class Range:
        low: int = attrs.field(validator=attrs.validators.ge(0))
        high: int = attrs.field(default=attrs.Factory(lambda self: self.low + 1, takes_self=True))

    assert Range(2).high == 3 and Range(2) == Range(2, 3)
    with pytest.raises(ValueError, match="low"):
        Range(-1)


@frozen
class Caching:
    """What can be written and read, with something that is computed from it."""

    value: int

    @cached_property
    def double(self) -> int:
        return 2 * self.value


def test_a_cached_value_is_no_field() -> None:
    this = Caching(2)
    assert (
        this.double == 4 and pickle.loads(pickle.dumps(this)) == this == Caching(2) and repr(this) == repr(Caching(2))
    )
