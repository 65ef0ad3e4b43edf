"""``collc cost --baselines``: collc's schedule beside what NCCL does on the same network, size by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING

import attrs

from collc.ir.progress import counting

from ..driver.result import CollectiveResult
from ..driver.sizes import at_size
from ..messages.quantities import show_size, show_time
from .table import table

if TYPE_CHECKING:
    from collc.ir.spec import Option
    from collc.tables.columns import Cell

    from ..selection import Auto
    from ..selection.baselines import Baseline, Baselines
    from ..selection.measure import Model

__all__ = ["Comparison", "baselines_object", "baselines_rows", "baselines_text", "compare"]


@attrs.frozen
class Comparison:
    """collc's algorithm and its exact seconds at each size, and the baselines."""

    names: tuple[str, ...]
    seconds: tuple[Fraction, ...]
    baselines: Baselines

    def rows(self) -> Iterator[tuple[int, str, Fraction, Baseline | None, Fraction | None]]:
        """Yield for each size (bytes) collc's algorithm, its seconds, the best baseline, and its time over collc's."""
        for place, (size, name, own) in enumerate(zip(self.baselines.sizes, self.names, self.seconds, strict=True)):
            best = self.baselines.best(place)
            yield size, name, own, best, None if best is None else _ratio(best.seconds[place], own)


def compare(
    result: CollectiveResult, given: Sequence[Option], sizes: Sequence[int], options: SimpleNamespace
) -> Comparison:
    """Return the comparison of a result with the baselines at these sizes (bytes), by the simulator.

    The scheduler ``auto`` chooses for each size, with the options of the request (``given``). Another
    scheduler plans each size anew.
    """
    from ..registry.options import build
    from ..selection import Auto
    from ..selection.baselines import measure_baselines
    from ..selection.measure import Model

    auto = build(Auto, "scheduler `auto`", given) if result.choice else Auto()
    reduction = 1 / options.gamma if options.gamma else None
    numbers = {
        "alpha": options.alpha,
        "bandwidth": options.bandwidth,
        "reduction": reduction,
        "launch": options.epsilon,
    }
    numbers = {name: value for name, value in numbers.items() if value is not None}
    auto = attrs.evolve(auto, sizes=None, most=None, **numbers)
    model, problem = Model.of(auto), result.request.problem
    chosen = [
        _chosen(result, auto, size) if result.choice else _scheduled(result, model, size)
        for size in counting(sizes, "sizes beside baselines")
    ]
    names, seconds = (tuple(column) for column in zip(*chosen, strict=True))
    return Comparison(names, seconds, measure_baselines(problem, sizes, model))


def _chosen(result: CollectiveResult, auto: Auto, size: int) -> tuple[str, Fraction]:
    """Return the algorithm that `auto` chooses for a size, and its seconds."""
    from ..selection import Selector

    choice = Selector(result.request.problem, attrs.evolve(auto, size=size), result.name).choose({})
    return choice.intervals[0].algorithm.name, choice.at(size)


def _scheduled(result: CollectiveResult, model: Model, size: int) -> tuple[str, Fraction]:
    """Return the scheduler, and the seconds of the schedule that it plans for a size."""
    planned = at_size(result, size)
    level = planned.forest or planned.schedule
    assert level is not None
    return planned.cost.scheduler, model.simulated(level).times.at(size)


def _ratio(other: Fraction, own: Fraction) -> Fraction | None:
    return other / own if own else None


def baselines_text(found: Comparison) -> str:
    """Return the table: a line for each size."""
    boxes = found.baselines.boxes
    names = [one.name for one in found.baselines.measured]
    lines = [
        (show_size(size), show_time(float(own)), name, *_cells(found, place), *_last(best, ratio))
        for place, (size, name, own, best, ratio) in enumerate(found.rows())
    ]
    head = ("size", "collc", "", *names, *(("best", "baseline / collc") if names else ()))
    text = f"  baselines: {'no boxes, every rank is a machine of its own' if boxes is None else boxes.text}\n"
    text += table(lines, head=head, right=(0, 1, *range(3, 3 + len(names)), 4 + len(names)), indent="    ")
    return text + "".join(f"    no {one.name}: {one.reason}\n" for one in found.baselines.skipped)


def _cells(found: Comparison, place: int) -> list[str]:
    return [show_time(float(one.seconds[place])) for one in found.baselines.measured]


def _last(best: Baseline | None, ratio: Fraction | None) -> tuple[str, ...]:
    return () if best is None else (best.name, "" if ratio is None else f"{float(ratio):.2f}x")


def baselines_rows(found: Comparison) -> Iterator[dict[str, Cell]]:
    """Yield the cells of every size: first collc's, then those of every baseline."""
    for place, (size, name, own, best, _) in enumerate(found.rows()):
        yield _cell_row(size, "collc", name, own, own, False)
        for one in found.baselines.measured:
            yield _cell_row(size, one.name, one.algorithm.text, one.seconds[place], own, one is best)


def _cell_row(size: int, algorithm: str, using: str, seconds: Fraction, own: Fraction, best: bool) -> dict[str, Cell]:
    ratio = _ratio(seconds, own)
    return {
        "size_bytes": size, "algorithm": algorithm, "using": using, "time_us": float(seconds * 10**6),
        "ratio": None if ratio is None else float(ratio), "best": best,
    }  # fmt: skip


def baselines_object(found: Comparison) -> dict[str, object]:
    """Return the JSON object: times in us as floats, and the ratios of the baselines' times to collc's."""
    boxes = found.baselines.boxes
    return {
        "boxes": None if boxes is None else boxes.text,
        "points": [
            {
                "size_bytes": size, "algorithm": name, "time_us": float(own * 10**6),
                "best": None if best is None else best.name, "ratio": None if ratio is None else float(ratio),
                "baselines": [_object(one, one.seconds[place], own) for one in found.baselines.measured],
            }
            for place, (size, name, own, best, ratio) in enumerate(found.rows())
        ],
        "skipped": [{"baseline": one.name, "reason": one.reason} for one in found.baselines.skipped],
    }  # fmt: skip


def _object(one: Baseline, seconds: Fraction, own: Fraction) -> dict[str, object]:
    ratio = _ratio(seconds, own)
    return {
        "name": one.name, "using": one.algorithm.text, "time_us": float(seconds * 10**6),
        "ratio": None if ratio is None else float(ratio),
    }  # fmt: skip
