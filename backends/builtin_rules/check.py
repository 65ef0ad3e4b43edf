"""Whether what was written chooses what was asked for, on both sides of every border and for other numbers of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collc.ir.tuning import LARGEST, Tuning

from .openmpi import chosen_by, read_rules
from .ucc import read_tune

__all__ = ["wrong_rules", "wrong_tune"]


def wrong_rules(text: str, choices: Sequence[tuple[str, Tuning]]) -> str | None:
    """Return what a file of Open MPI's rules gets wrong; None if nothing."""
    try:
        rules = read_rules(text)
    except ValueError as problem:
        return str(problem)
    served = {(number, tuning.collective.num_ranks) for number, tuning in choices}
    for number, tuning in choices:
        ranks = tuning.collective.num_ranks
        for size in _sizes(tuning, 1):
            found, due = chosen_by(rules, int(number), ranks, size), tuning.at(size).algorithm
            if str(found) != due:
                return f"function {number}, {ranks} ranks, {size} bytes: algorithm {found}, not {due}"
        for other in (1, ranks - 1, ranks + 1, 2 * ranks):
            if (number, other) not in served and chosen_by(rules, int(number), other, 4096):
                return f"function {number} has an algorithm for {other} ranks"
    return None if {int(number) for number, _ in choices} == set(rules) else "other functions"


def wrong_tune(text: str, choices: Sequence[tuple[str, bool, Tuning]]) -> str | None:
    """Return what a value of UCC's variable gets wrong; None if nothing."""
    try:
        tune = read_tune(text)
    except ValueError as problem:
        return str(problem)
    for function, per_rank, tuning in choices:
        ranks = tuning.collective.num_ranks
        rows, step = tune.get((function, ranks), []), ranks if per_rank else 1
        for size in _sizes(tuning, step):
            fitting = [algorithm for low, algorithm in rows if low <= size // step]
            found, due = fitting[-1] if fitting else "none", tuning.at(size).algorithm
            if found != due:
                return f"{function}, {ranks} ranks, {size} bytes: {found}, not {due}"
    return None if {(one, t.collective.num_ranks) for one, _, t in choices} == set(tune) else "other functions"


def _sizes(tuning: Tuning, step: int) -> Iterator[int]:
    """Yield multiples of ``step`` on both sides of every border, powers of two, and 0."""
    near = (low + step * k for low in tuning.borders for k in (-1, 0, 1))
    found = {size - size % step for size in (0, *near, *(2**k for k in range(63)))}
    yield from sorted(size for size in found if 0 <= size <= LARGEST)
