"""A chunk has at least one element: options that count pieces are limited by the size of the data."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import Option
from collc.passes import PASSES, SCHEDULERS
from collc.passes.elements import require_elements
from collc.registry.classes import pass_class

DATA = Collective("allreduce", 3, size=1 << 20)


def most(this: str, option: str, collective: Collective) -> int:
    """Return the largest number that is taken, by bisection: one more is refused."""
    low, high = 1, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        try:
            require_elements(pass_class(this), this, [Option(option, middle)], collective)
            low = middle
        except CollcError as failure:
            assert [d.code for d in failure.diagnostics] == ["C0512"]
            high = middle
    return low


@pytest.mark.parametrize(
    ("this", "option", "collective", "expected"),
    [
        ("bfb", "chunks", DATA, 87382),
        ("bfb", "chunks", attrs.evolve(DATA, dtype="bfloat16"), 174763),
        ("bfb", "chunks", attrs.evolve(DATA, size=4), 1),
        ("exact", "chunks", Collective("broadcast", 3, root=0, size=40), 10),
        ("forest", "pieces", DATA, 87382),
        ("flow", "chunks", Collective("alltoall", 4, size=1024), 64),
        ("double-binary-tree", "pipeline", DATA, 131072),
    ],
)
def test_the_limit_is_the_number_of_elements(this: str, option: str, collective: Collective, expected: int) -> None:
    assert most(this, option, collective) == expected


@pytest.mark.parametrize("value", [Fraction(1, 2), "auto", True])
def test_values_that_are_no_number_are_judged_elsewhere(value: Fraction | str | bool) -> None:
    require_elements(pass_class("bfb"), "bfb", [Option("chunks", value)], DATA)


def test_without_a_size_there_is_no_limit() -> None:
    require_elements(pass_class("bfb"), "bfb", [Option("chunks", 1 << 40)], attrs.evolve(DATA, size=None))


def test_every_option_of_a_scheduler_that_counts_pieces_says_what_it_divides() -> None:
    """Options called ``chunks``, ``pieces`` or ``pipeline``: a new one must be limited too."""
    for name in SCHEDULERS.own:
        fields = attrs.fields(pass_class(name)) if name in PASSES else ()
        for field in fields:
            if field.name in ("chunks", "pieces", "pipeline"):
                assert field.metadata["range"].divides, f"{name} {field.name}"
