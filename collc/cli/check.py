"""``collc check``: what is wrong with files, without synthesis."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.frozen import frozen
from collc.ir.shown import some
from collc.ir.spec import CollectiveRequest, Spec
from collc.ir.topology import Topology

from ..driver.checking import mistakes
from ..driver.spans import span
from ..files.naming import stem_of
from ..files.texts import STDIN
from ..messages.internal import INTERNAL_STATUS
from ..reading import load
from ..reading.base import ReadOptions
from ..tables.columns import Cell, Table
from ..tables.further import CHECKED, DECLARED, NETWORKS
from .arguments import usage_error
from .console import Console
from .inputs import loading, read, require_own_places
from .tabular import Tables, require_one_form, show

__all__ = ["check"]


@frozen(eq=False)
class _Checked:
    """One file: its specification if it can be read, and its mistakes with their exit status."""

    path: str
    spec: Spec | None = None
    mistakes: tuple[Diagnostic, ...] = ()
    status: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were read, as far as they are known, this one first."""
        if self.spec is not None:
            return tuple(dict.fromkeys([self.path, *self.spec.files]))
        named = (d.span.source.path for d in self.mistakes if d.span is not None)
        return tuple(dict.fromkeys([self.path, *named]))


def check(options: SimpleNamespace, console: Console) -> int:
    """Check files, and all ``.coll`` files of folders; return the worst exit status of all."""
    if options.watch:
        from .watching import watch

        return watch(lambda: _round(options, console), options.files, console)
    return _round(options, console)[0]


def _round(options: SimpleNamespace, console: Console) -> tuple[int, tuple[str, ...]]:
    """Check all files once; return the exit status and the files that were read."""
    require_one_form(options, [path for path in options.files if path != STDIN])
    checked = [_check(path, options, console) for path in _paths(options.files)]
    for one in checked:
        console.fail(one.mistakes)
        if one.spec is not None:
            console.warn(one.spec.warnings)
    if not options.json:
        _say(checked, console)
    show(options, console, _tables(checked), lambda: _document(checked), lambda: "")
    status = max(one.status for one in checked)
    return status, tuple(dict.fromkeys(name for one in checked for name in one.files))


def _paths(given: Sequence[str]) -> Iterator[str]:
    """Yield the files of a command line; of a folder, all ``.coll`` files below it by name. Raises C0001."""
    for path in given:
        if path == STDIN or not os.path.isdir(path):
            yield path
            continue
        found = sorted(
            os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names
            if name.endswith(".coll")
        )  # fmt: skip
        if not found:
            raise usage_error(f"there is no `.coll` file in the folder `{path}`", "name a file, or another folder")
        yield from found


def _check(path: str, options: SimpleNamespace, console: Console) -> _Checked:
    """Read a file and judge its collectives; what is infeasible is a mistake of the file, too."""
    with span(path, "input"):
        return _judged(path, options, console)


def _judged(path: str, options: SimpleNamespace, console: Console) -> _Checked:
    spec = None
    try:
        text, name = read(path, console)
        spec, start = load(text, name, "check", ReadOptions(loading(options)))
        wrong = mistakes(spec, stem_of(path)) if start is None else None
    except CollcError as problem:
        wrong = problem
    if spec is not None:
        require_own_places(options, spec.files)
    if wrong is None:
        return _Checked(path, spec)
    if wrong.exit_status == INTERNAL_STATUS:
        raise wrong
    return _Checked(path, spec, wrong.diagnostics, 1)


# ---- output


def _document(checked: Sequence[_Checked]) -> dict[str, object]:
    """Return the object of ``--json``: the only file, or the first with all in ``checked``."""
    objects = [_object(one) for one in checked]
    if len(objects) == 1:
        return {key: value for key, value in objects[0].items() if key != "path"}
    return {**objects[0], "ok": all(one.status == 0 for one in checked), "checked": objects}


def _tables(checked: Sequence[_Checked]) -> Tables:
    """Return the tables of ``--table``: the files, and what they declare."""
    return {
        "files": lambda: Table(CHECKED, [
            {
                "path": one.path, "ok": one.status == 0, "topologies": len(_topologies(one.spec)),
                "collectives": len(_collectives(one.spec)), "errors": len(one.mistakes),
            }
            for one in checked
        ]),
        "topologies": lambda: Table(NETWORKS, [
            {"path": one.path, "unit": topology.unit, **_size(name, topology)}
            for one in checked if one.spec is not None for name, topology in one.spec.topologies.items()
        ]),
        "collectives": lambda: Table(DECLARED, [
            {
                "path": one.path, "name": wanted.name, "kind": wanted.problem.collective.name,
                "topology": wanted.topology, "scheduler": wanted.schedule.scheduler,
                "emits": ", ".join(emit.target for emit in wanted.emits),
            }
            for one in checked if one.spec is not None for wanted in one.spec.collectives.values()
        ]),
    }  # fmt: skip


def _object(one: _Checked) -> dict[str, object]:
    """Return the object of a file; ``diagnostics`` only if something is wrong with it."""
    from ..messages.render import diagnostic_object

    found: dict[str, object] = {
        "path": one.path, "ok": one.status == 0, "topologies": _topologies(one.spec),
        "collectives": _collectives(one.spec), "files": list(one.files) if one.spec is None else list(one.spec.files),
    }  # fmt: skip
    if one.spec is not None and one.spec.together:
        found["together"] = [list(names) for names in one.spec.together]
    return {**found, "diagnostics": [diagnostic_object(d) for d in one.mistakes]} if one.mistakes else found


def _topologies(spec: Spec | None) -> list[dict[str, Cell]]:
    return [_size(name, topology) for name, topology in (spec.topologies if spec else {}).items()]


def _size(name: str, topology: Topology) -> dict[str, Cell]:
    return {
        "name": name, "ranks": topology.num_ranks, "switches": topology.num_switches,
        "links": topology.num_links, "degree": topology.degree,
    }  # fmt: skip


def _collectives(spec: Spec | None) -> list[dict[str, object]]:
    return [_declared(one) for one in (spec.collectives.values() if spec else ())]


def _declared(one: CollectiveRequest) -> dict[str, object]:
    """Return the object of a collective; ``members``, ``shards`` and ``weights`` only if it has them."""
    collective = one.problem.collective
    found: dict[str, object] = {
        "name": one.name, "kind": collective.name, "topology": one.topology,
        "scheduler": one.schedule.scheduler, "emits": [emit.target for emit in one.emits],
    }  # fmt: skip
    if collective.members is not None:
        found["members"] = list(collective.members)
    if collective.pre is not None:
        found["shards"] = len(collective.pre)
    if collective.weights is not None:
        found["weights"] = list(collective.weights)
    return found


def _say(checked: Sequence[_Checked], console: Console) -> None:
    """List the declarations of every file with ``-v``, and its verdict if there are several."""
    for one in checked:
        if len(checked) > 1:
            console.say(f"{one.path}: {'wrong' if one.status else 'right'}")
        for t in _topologies(one.spec):
            console.say(f"topology {t['name']}: {t['ranks']} ranks, {t['switches']} switches, {t['links']} links")
        for c in one.spec.collectives.values() if one.spec else ():
            console.say(f"collective {c.name}: {c.problem.brief} using {c.schedule.scheduler}")
        for names in one.spec.together if one.spec else ():
            console.say(f"together: {some(names)}")
