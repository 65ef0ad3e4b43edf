"""The classes that a plugin package needs to describe its passes, targets and formats; see ``examples/plugin``.

An entry point of the group ``collc.plugins`` names a :class:`Plugin`, which has tables like collc's own. collc imports
its module for every name that is not its own, so the module should import no other module of its package.
"""

from __future__ import annotations

from collc.frontends.coll.families import Construction, Parameter
from collc.frontends.importing.formats import Importer
from collc.ir.registry import GROUP, Entry, Plugin
from collc.passes.schedulers import ANY, RANKS, Candidate, Scheduler

from .reading import Format

__all__ = [
    "ANY", "GROUP", "RANKS", "Candidate", "Construction", "Entry", "Format", "Importer", "Parameter", "Plugin",
    "Scheduler",
]  # fmt: skip
