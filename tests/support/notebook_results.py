"""Results of every kind that notebooks show, and what a browser sees of their tables."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from typing import Any

import collc
from collc.backends.measured import Row, RunResult
from collc.driver.replan import FaultCost
from collc.ir.topology import Topology
from collc.ir.verify import Check, Report

__all__ = ["EVIL", "FRAMED", "HTML", "result_of", "tags_of"]

EVIL = '<script>alert("1")</script>&\'"'

#: the results with a data frame
FRAMED = (
    "result", "collective", "cost", "simulated", "frontier", "report", "topology", "sweep", "faults", "imported",
    "training", "listing", "choice", "run", "part of a run", "roots",
)  # fmt: skip
#: the results with a table; those called evil hold names with tags
HTML = (*FRAMED, "evil report", "evil topology", "evil sweep", "evil faults", "evil run", "evil training")


class _Tags(HTMLParser):
    """Collects the tags of a text, and what stands between them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags = set[str]()
        self.open = list[str]()
        self.texts = list[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def tags_of(text: str) -> tuple[set[str], list[str], list[str]]:
    """Return the tags of a text, those that are not closed, and the texts between them."""
    found = _Tags()
    found.feed(text)
    return found.tags, found.open, found.texts


@cache
def result_of(name: str) -> Any:  # Any: results of all kinds
    """Return a result by its name."""
    return _evil(name.removeprefix("evil ")) if name.startswith("evil ") else _right(name)


def _right(name: str) -> object:
    match name:
        case "result":
            text = "topology t = torus(3, 3); collective sums = allreduce on t; collective parts = allgather on t;"
            return collc.compile_source(text, target="msccl-xml")
        case "collective":
            return result_of("result")["sums"]
        case "cost":
            return result_of("collective").cost
        case "simulated":
            return result_of("collective").simulate(["1KiB", "1MiB"])
        case "report":
            return result_of("collective").reports[0]
        case "frontier":
            return collc.find(nodes=64, degree=4, bidirectional=False)
        case "topology":
            return collc.topology("torus(3, 3)")
        case "sweep":
            return collc.sweep("torus(3, 3)", "allgather", ["bfb", "ring"], sizes="1MiB")
        case "training":
            return collc.train("gpt2-xl", ["torus(4, 4)", "hypercube(4)"])
        case "listing":
            return collc.listing("schedulers")
        case "choice" | "roots":
            chosen = collc.compile_source("collective c = broadcast on biring(4) { root: all };")
            return chosen["c"].choice if name == "choice" else chosen.table("roots", ["1KiB", "1MiB"])
        case "part of a run":
            return RunResult("MPI", 2, (Row("a", "allreduce", 2, 8, 64, "int32", "sum", False, (1e-6, 3e-6)),), "C0701")
        case "run":
            return collc.Run((result_of("part of a run"),))
        case "faults":
            healthy = collc.compile_source("collective c = allgather on torus(3, 3); schedule c using forest;")
            return collc.replan(healthy, ["without 0 <-> 1"]).cost_of_fault
    return _imported()


def _imported() -> object:
    from fractions import Fraction

    from collc.ir.diagnostic import Source
    from collc.tools.importing import Request, figures_of, import_texts

    source = Source("rack.conf", "SwitchName=leaf Nodes=n[1-4]")
    return import_texts(Request((source,), "rack", figures_of(tiers={"leaf": Fraction(50 * 10**9)})))


def _evil(name: str) -> object:
    ring = Topology.from_links(EVIL, 2, [(0, 1), (1, 0)])
    match name:
        case "report":
            return Report(EVIL, EVIL, 2, (Check(EVIL, False, EVIL),))
        case "sweep":
            return collc.sweep({EVIL: ring}, "allgather", "bfb", sizes=1024)
        case "run":
            part = RunResult(EVIL, 2, (Row(EVIL, EVIL, 2, 8, 64, EVIL, EVIL, False, (), (), EVIL),), "C0701")
            return collc.Run((part,))
        case "training":
            return collc.train("gpt2-xl", {EVIL: ring})
        case "faults":
            from fractions import Fraction

            return FaultCost(Fraction(1), Fraction(1), Fraction(1), EVIL)
    return ring
