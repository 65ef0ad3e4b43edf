"""The programs of a specification, and the choice among them for a call."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from collc.ir.program import Program
from collc.ir.relabelling import relabelled
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import adds_once, verify

from ..files.caches import read_launch, write_launch
from ..files.derived import Origins
from ..files.surroundings import plugins, surroundings
from ..files.texts import read_text
from ..files.trust import digest_of
from .moves import ProgramLayout
from .settings import CACHE, Settings

if TYPE_CHECKING:
    from collc.ir.levels import Executable

    from ..driver.result import CollectiveResult

#: changes if the form of the entries of the cache does
_FORM = 2

__all__ = ["Algorithm", "Entry", "compiled", "load", "printed"]


@attrs.frozen(eq=False)
class Algorithm:
    """One program, for calls of up to ``most`` bytes of the whole vector (None: no limit)."""

    layout: ProgramLayout
    most: int | None


@attrs.frozen(eq=False)
class Entry:
    """One collective of the specification; ``once``: it adds every contribution once, as sums need."""

    name: str
    kind: str
    ranks: int
    root: int | None
    once: bool
    algorithms: tuple[Algorithm, ...]

    def peers(self, rank: int) -> set[int]:
        """Return the ranks with which a rank exchanges messages."""
        return {peer for algorithm in self.algorithms for peer in algorithm.layout.peers(rank)}

    def choose(self, size: int) -> int:
        """Return the index of the algorithm for a whole vector of ``size`` bytes."""
        last = len(self.algorithms) - 1
        return next((k for k, a in enumerate(self.algorithms) if a.most is None or size <= a.most), last)


#: (collective's name, most bytes, printed program)
Printed = tuple[str, int | None, str]


def compiled(settings: Settings) -> list[Printed]:
    """Return the programs of a specification, printed, from the cache of ``COLLC_CACHE`` if it has them.

    A collective that cannot be scheduled is left out, with a Python warning: gloo executes its calls.
    Raises CollcError.
    """
    cache = os.environ.get(CACHE, "")
    key = _key(settings) if cache else None
    found = read_launch(cache, key) if key else None
    if found is not None:
        left, rows = json.loads(found)
        programs = printed(rows)
    else:
        left, programs, origins = _compiled(settings)
        if key:
            texts = {settings.spec: read_text(settings.spec), **origins.texts}
            write_launch(cache, key, json.dumps([left, programs]), attrs.evolve(origins, texts=texts))
    for reason in left:
        warnings.warn(f"collc: {reason}", RuntimeWarning, stacklevel=2)
    return programs


def _key(settings: Settings) -> str | None:
    """Return the hash of everything that determines the programs; None if the specification cannot be read."""
    digest = digest_of(settings.spec)
    if digest is None:
        return None
    facts = [_FORM, "torch", settings.spec, digest, repr(settings.defines), settings.collectives, surroundings()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _compiled(settings: Settings) -> tuple[list[str], list[Printed], Origins]:
    """Return what is left to gloo and why, the programs, and the files that they come from."""
    from ..compiling import Request, possible, shielded

    request = Request("ir", dict(settings.defines), collective=settings.collectives)
    result, left = shielded("compile", lambda: possible(settings.spec, request, "gloo"))
    programs: list[Printed] = []
    for name, one in result.collectives.items():
        for each in one.each:
            assert each.program is not None  # the target needs programs
            most = each.window.high if each.window else None
            programs.append((name, most, print_ir(each.program)))
            programs += [(f"{name} (root {root})", most, print_ir(moved)) for root, moved in _moved(one, each.program)]
    texts = {source.path: source.text for source in result.spec.sources}
    return [f"{one.message} [{one.code}]" for one in left], programs, Origins(texts, result.spec.absent, plugins())


def _moved(one: CollectiveResult, program: Executable) -> Iterator[tuple[int, Program]]:
    """Yield the other roots that an automorphism moves a plan to, with its program for each.

    A program is left out if its instructions are of one run of blocks for this root only; gloo then executes the calls.
    """
    roots, collective = one.request.roots, one.request.problem.collective
    if roots is None or collective.root is None or not isinstance(program, Program):
        return
    for root in roots.orbit(collective.root):
        if root != collective.root:
            moved = relabelled(program, attrs.evolve(program.collective, root=root), roots.images(root))
            if moved is not None:
                verify(moved).require()
                yield root, moved


def printed(rows: Sequence[Sequence[object]]) -> list[Printed]:
    """Return printed programs from JSON."""
    return [(str(name), None if most is None else int(str(most)), str(text)) for name, most, text in rows]


def load(rows: Sequence[Printed]) -> list[Entry]:
    """Return the collectives of printed programs, in order, ready for planning; raises C0704."""
    found: dict[str, list[tuple[int | None, Program]]] = {}
    for name, most, text in rows:
        program = parse_ir(text, f"{name}.ir")
        assert isinstance(program, Program)
        found.setdefault(name, []).append((most, program))
    return [_entry(name, programs) for name, programs in found.items()]


def _entry(name: str, programs: Sequence[tuple[int | None, Program]]) -> Entry:
    collective = programs[0][1].collective
    once = all(adds_once(program) for _, program in programs)
    algorithms = tuple(Algorithm(ProgramLayout.of(program), most) for most, program in programs)
    return Entry(name, collective.kind, collective.num_ranks, collective.root, once, algorithms)
