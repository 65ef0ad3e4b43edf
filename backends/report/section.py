"""The data of a section: everything that a page says of one collective."""

from __future__ import annotations

from collections.abc import Callable

from collc.ir.account import Account
from collc.ir.progress import counting

from .answer import answer_of, assumed, rows_of
from .findings import findings_of
from .flow import flow_of, simulation_of
from .goodput import goodput_of
from .network import cut_of, network_of
from .numbers import Json
from .source import source_of
from .threadblocks import program_of
from .transfers import transfers_of

__all__ = ["Section", "section_of"]

#: one section, by the parts of a page
Section = dict[str, Json]


def section_of(account: Account) -> Section:
    """Return the data of an account; raise C0301 if a message has no route."""
    algorithm = account.shown
    simulation = simulation_of(algorithm.schedule)
    network = network_of(algorithm.schedule.topology)
    parts: dict[str, Callable[[], Json]] = {
        "sizes": lambda: rows_of(account), "cut": lambda: cut_of(algorithm.cost, algorithm.schedule.topology),
        "flow": lambda: flow_of(simulation, network["shape"] != "none"),
        "transfers": lambda: transfers_of(algorithm.schedule, simulation.num_steps),
        "program": lambda: None if algorithm.program is None else program_of(algorithm.program),
        "goodput": lambda: goodput_of(account), "findings": lambda: findings_of(account),
        "source": lambda: source_of(account),
    }  # fmt: skip
    return {
        "name": account.name, "collective": algorithm.cost.collective, "scheduler": algorithm.cost.scheduler,
        **answer_of(account), "assumed": assumed(account), "own": account.own, "steps": simulation.num_steps,
        "network": network, "absent": algorithm.absent,
        **{name: make() for name, make in counting(parts.items(), "parts of the page")},
    }  # fmt: skip
