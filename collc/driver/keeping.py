"""Results that a store keeps: what is kept, under which key, and a result from what was kept."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import attrs

from collc.backends.base import Artifact
from collc.ir.costs.cost import Cost
from collc.ir.frozen import frozen
from collc.ir.group import Group
from collc.ir.registry import GROUP
from collc.ir.topology import Origin, Topology

from ..files.store import Store, digest
from ..files.surroundings import tree
from .compilation import Job, compiled
from .later import Deferred
from .records import read, written
from .result import CollectiveResult, Costs, Settings

if TYPE_CHECKING:
    from collc.ir.spec import Spec
    from collc.passes.synthesis.forest.allreduce_program import AllreduceBound, ReachedBound

__all__ = ["kept_or_run", "key_of"]

#: collc, and packages whose versions can change a result
_PACKAGES = ("collc", "highspy", "lark", "lxml", "networkx", "numpy")
_ROOMS = ("collc", "collc.ir", "collc.frontends", "collc.passes", "collc.backends")
#: changes if the form of the records does
_FORM = 1


# ---- keys


def key_of(
    spec: Spec, text: str, path: str, options: Sequence[object], topologies: Mapping[str, Topology]
) -> str | None:
    """Return the hash of everything that determines the results of a specification.

    ``text`` is the main file's, ``path`` its name. ``options`` are all others of the compilation: texts, numbers, and
    lists of these. ``topologies`` were given from outside. Included files count with the texts that were read. None if
    a topology was built from something that has no text.
    """
    sources = {source.path: source.text for source in spec.sources}
    files = [(name, digest(sources[name]) if name in sources else _file_hash(name)) for name in spec.files[1:]]
    try:
        given = [(name, _network(topologies[name])) for name in sorted(topologies)]
        parts = [_FORM, path, digest(text), files, options, given, *_surroundings()]
        return digest(json.dumps(parts))
    except TypeError:
        return None


def _file_hash(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return ""


def _network(topology: Topology) -> list[object]:
    from collc.ir.text import print_ir

    symmetry = topology.symmetry
    return [digest(print_ir(topology)), symmetry.shown if symmetry else "", _origin(topology.origin)]


def _origin(origin: Origin | None) -> object:
    if origin is None:
        return None
    return [origin.name, *map(_argument, origin.arguments)]


def _argument(value: object) -> object:
    """Return an argument of a family or operator as data; raise TypeError for what is not known to have a text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Topology):
        return _network(value)
    if isinstance(value, Group):
        return value.expression
    if isinstance(value, (tuple, list)):
        return [_argument(item) for item in value]
    raise TypeError(f"an argument of a topology is a {type(value).__name__}")


@cache
def _surroundings() -> tuple[object, ...]:
    """Return the versions of collc, of solvers and plugins, and the state of collc's and the plugins' files."""
    from importlib.metadata import entry_points

    plugins = sorted(
        (point.name, point.value, point.dist.name if point.dist else "", point.dist.version if point.dist else "")
        for point in entry_points(group=GROUP)
    )
    packages = [*_ROOMS, *sorted({value.partition(":")[0].strip() for _, value, *_ in plugins})]
    return [(name, _version(name)) for name in _PACKAGES], plugins, [_state(name) for name in packages]


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:  # a source tree that is not installed
        return ""


def _state(module: str) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of every file of a package: code that changes without its version."""
    try:
        spec = find_spec(module.partition(".")[0] if not module.startswith("collc.") else module)
    except (ImportError, ValueError):
        return []
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return sorted(found for folder in folders[:1] for found in tree(folder))


# ---- results


def kept_or_run(
    store: Store, key: str | None, jobs: Sequence[Job], settings: Settings,
    run: Callable[[], list[CollectiveResult]], reads: bool = True,
) -> list[CollectiveResult]:  # fmt: skip
    """Return the results that the store keeps under a key, or those of ``run``, which are kept then.

    Without ``reads``, the results are those of ``run``.
    """
    if key is None:
        return run()
    found = _from_store(store, key, jobs, settings) if reads else None
    if found is not None:
        return found
    results = run()
    if len(results) < len(jobs):  # some have failed
        return results
    record = _record(jobs, results)
    if record is not None:
        store.write(key, record)
    return [_with_kept_costs(result, store, key, place) for place, result in enumerate(results)]


def _record(jobs: Sequence[Job], results: Iterable[CollectiveResult]) -> str | None:
    """Return the results as text; None if a store cannot keep them.

    Files that several collectives share are made of parts that have no text.
    """
    if any(not job.targets or any(target.shared is not None for target in job.targets) for job in jobs):
        return None
    rows = []
    for job, result in zip(jobs, results, strict=True):
        emitted = tuple(
            (job.targets.index(target), tuple(attrs.evolve(file, part=None, model=None) for file in files))
            for target, files in result.emitted
        )
        facts = (result.reports, result.warnings, result.remarks, result.choice, result.costs is not None)
        rows.append((result.name, emitted, *facts))
    try:
        return written(tuple(rows))
    except TypeError:
        return None


def _from_store(
    store: Store, key: str, jobs: Sequence[Job], settings: Settings
) -> list[CollectiveResult] | None:  # fmt: skip
    text = store.read(key)
    if text is None:
        return None
    try:
        rows = read(text)
        assert isinstance(rows, tuple)
        return [
            _kept(job, settings, row, store, _cost_key(key, place))
            for place, (job, row) in enumerate(zip(jobs, rows, strict=True))
        ]
    except (ValueError, TypeError, IndexError, AssertionError):
        return None


# Any: the digest says that :func:`_record` wrote the row
def _kept(job: Job, settings: Settings, row: Any, store: Store, cost_key: str) -> CollectiveResult:
    name, emitted, reports, warnings, remarks, choice, has_costs = row
    assert name == job.request.name
    files = tuple((job.targets[index], artifacts) for index, artifacts in emitted)
    assert all(isinstance(file, Artifact) for _, artifacts in files for file in artifacts)
    again = Deferred(partial(compiled, job, settings))
    return CollectiveResult(
        job.request.name, job.request, settings, None, None, emitted=files, reports=reports, warnings=warnings,
        remarks=remarks, choice=choice, again=again, costs=KeptCosts(store, cost_key, again) if has_costs else None,
    )  # fmt: skip


def _with_kept_costs(result: CollectiveResult, store: Store, key: str, place: int) -> CollectiveResult:
    if result.costs is None:
        return result
    own = Deferred(partial(_itself, result))
    return attrs.evolve(result, costs=KeptCosts(store, _cost_key(key, place), own))


def _itself(result: CollectiveResult) -> CollectiveResult:
    return result


def _cost_key(key: str, place: int) -> str:
    return digest(f"{key} cost {place}")


@frozen(eq=False)
class KeptCosts:
    """The costs of a result: from the store, or computed when first used, and kept then."""

    store: Store
    key: str
    again: Deferred[CollectiveResult]

    @cached_property
    def cost(self) -> Cost:
        """The cost with the best bounds that collc can prove."""
        text = self.store.read(self.key)
        if text is not None:
            try:
                found = read(text)
            except ValueError:
                found = None
            if isinstance(found, Cost):
                return found
        cost = self._own.cost
        with contextlib.suppress(TypeError):  # a certificate that has no record
            self.store.write(self.key, written(cost))
        return cost

    @property
    def plain_cost(self) -> Cost:
        """The cost with the bounds that need no linear program."""
        return self._own.plain_cost

    @property
    def allreduce_bound(self) -> AllreduceBound | ReachedBound | None:
        """The bound on allreduces by trees."""
        return self._own.allreduce_bound

    @property
    def _own(self) -> Costs:
        costs = self.again.value.costs
        assert costs is not None, "the result that was kept had costs"
        return costs
