"""The target ``svg``: pictures of a collective, read back and compared with its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import attrs

from collc.ir.account import Account
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.verify import Report

from ..base import Artifact, Target
from .contents import pictures_of
from .reader import checks

__all__ = ["Svg"]

_MOST_TREES = 256


@frozen
class Svg(Target):
    """Pictures as SVG files: the network with the loads of its links, the trees, a matrix of the loads, the goodput.

    The main file is the network, NAME.svg. Beside it are NAME-trees.svg, NAME-load.svg and
    NAME-goodput.svg. They fit a page 800 wide, follow light and dark screens, and print on white.
    """

    name: ClassVar[str] = "svg"
    summary: ClassVar[str] = "pictures: network with loads, trees, matrix of loads, goodput with the bound"
    suffix: ClassVar[str] = ".svg"
    level: ClassVar[str] = "account"

    picture: Literal["all", "topology", "trees", "load", "goodput"] = attrs.field(
        default="all", metadata={"help": "which picture: all, topology, trees, load or goodput"}
    )
    trees: int = attrs.field(default=12, metadata={"help": "the largest number of trees that are drawn, 1 to 256"})

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.trees <= _MOST_TREES:
            needed = f"1 to {_MOST_TREES}"
            raise error("C0820", f"`trees` is {self.trees}, needed {needed}", option="trees", exit_status=2)

    def emit(self, ir: Account) -> Sequence[Artifact]:
        """Return the pictures, the network first.

        Raises C0301 if a message has no route, C0821 for the trees of a schedule in which nothing moves.
        """
        found: list[Artifact] = []
        for name, picture in pictures_of(ir, self.picture, self.trees):
            ending = f"-{name}{self.suffix}" if found else ""
            found.append(Artifact(f"{ir.name}{ending or self.suffix}", picture.file(), self.name, ending=ending))
        if not found:
            cost = ir.shown.cost
            raise error(
                "C0821", f"`{ir.name}` has no trees to draw: nothing moves by `{cost.scheduler}`",
                hint="use another `picture`", option="picture",
            )  # fmt: skip
        return found

    def check(self, ir: Account, artifacts: Sequence[Artifact]) -> Report:
        """Read the pictures, and compare every link, cell, edge and point with the schedule and its times."""
        found = tuple(checks(ir, artifacts, self.emit(ir)))
        return Report("pictures", ir.shown.schedule.collective.kind, ir.topology.num_ranks, found)
