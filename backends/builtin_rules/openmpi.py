"""The file of rules of Open MPI's component ``tuned``, in the format of numbers that all versions read.

Open MPI takes the rules of the largest number of ranks that is not larger than the communicator's, and those of the
first number for smaller communicators. So rules without a choice (algorithm 0) stand before and after each number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from collc.ir.tuning import Tuning

__all__ = ["Rules", "chosen_by", "read_rules", "rules_text"]

#: number of a function -> ranks -> (first size, algorithm), ascending
Rules: TypeAlias = dict[int, dict[int, list[tuple[int, int]]]]


def rules_text(choices: Sequence[tuple[str, Tuning]]) -> str:
    """Return the file for (number of the function, its choice)."""
    functions = sorted({int(number) for number, _ in choices})
    lines = [f"{len(functions)} # functions"]
    for function in functions:
        by_ranks = {one.collective.num_ranks: one for number, one in choices if int(number) == function}
        lines += _function(function, by_ranks)
    return "\n".join([*lines, ""])


def _function(function: int, tunings: Mapping[int, Tuning]) -> Iterator[str]:
    kind = next(iter(tunings.values())).collective.kind
    numbers = sorted({1, *tunings, *(ranks + 1 for ranks in tunings)})
    yield f"{function} # {kind}"
    yield f"{len(numbers)} # numbers of ranks"
    for ranks in numbers:
        tuning = tunings.get(ranks)
        yield f"{ranks} # ranks" + ("" if tuning else " or more: Open MPI's own choice")
        rows = [(one.low, one.algorithm) for one in tuning.ranges] if tuning else [(0, "0")]
        yield f"{len(rows)} # sizes: first byte, algorithm, fan-out, segment"
        yield from (f"{low} {algorithm} 0 0" for low, algorithm in rows)


def read_rules(text: str) -> Rules:
    """Return the rules of a file as Open MPI reads it; raise ValueError for a file that it refuses."""
    words = iter([word for line in text.splitlines() for word in line.partition("#")[0].split()])

    def number() -> int:
        found = next(words, None)
        if found is None or not found.isdigit():
            raise ValueError(f"expected a number, found {found or 'the end'}")
        return int(found)

    rules: Rules = {}
    for _ in range(number()):
        function = number()
        by_ranks = rules[function] = {}
        for _ in range(number()):
            ranks = number()
            rows = [(number(), number(), number(), number()) for _ in range(number())]
            if not rows or rows[0][0] != 0:
                raise ValueError(f"the rules for {ranks} ranks do not begin at size 0")
            by_ranks[ranks] = [(low, algorithm) for low, algorithm, _, _ in rows]
    if (rest := next(words, None)) is not None:
        raise ValueError(f"expected the end, found {rest}")
    return rules


def chosen_by(rules: Rules, function: int, ranks: int, size: int) -> int:
    """Return the algorithm that Open MPI takes for a call, 0 if it decides itself."""
    numbers = rules.get(function, {})
    if not numbers:
        return 0
    order = list(numbers)
    fitting = [one for one in order if one <= ranks]
    rows = numbers[fitting[-1] if fitting else order[0]]
    return [algorithm for low, algorithm in rows if low <= size][-1]
