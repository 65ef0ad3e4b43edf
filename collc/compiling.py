"""What the functions of the API share: their options, one compilation or many, and what errors become."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeVar

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, error, nearest
from collc.ir.registry import consulting
from collc.ir.shown import clipped
from collc.ir.topology import Topology

from . import accepted
from .driver.compilation import make_jobs, run_jobs, try_jobs, with_read_files
from .driver.leaving import without_impossible
from .driver.pipeline import LEVELS
from .driver.plan import Recipe
from .driver.result import CollectiveResult, Settings
from .driver.watching import Watch
from .files.texts import read_text
from .messages.internal import InternalError, contained
from .reading import load
from .reading.base import ReadOptions
from .reading.loading import Loading
from .registry.elements import Element, parse_elements
from .results import Result

if TYPE_CHECKING:
    from typing import TypedDict

    import networkx

    from .files.store import Store

    class Options(TypedDict, total=False):
        """The options that every item of ``collc.compile_many`` may have."""

        target: str | Sequence[str] | None
        params: Mapping[str, Param] | None
        topologies: Mapping[str, Topology | networkx.Graph] | None
        include_path: Sequence[Path]
        collective: str | Sequence[str]
        level: Level
        passes: str | None
        disable_passes: Iterable[str]
        verify: Verify
        node_limit: int
        cache: bool | Path

    class Item(Options, total=False):
        """A specification: a file by its ``path``, or a ``text``, with its own options."""

        path: Path
        text: str


__all__ = [
    "Item", "Level", "Options", "Param", "Path", "Request", "Verify", "compiled", "each", "loading_of",
    "network", "possible", "recipe_of", "shielded", "store_of", "targets_of", "text_of", "verify_mode",
]  # fmt: skip

T = TypeVar("T")
Path = str | os.PathLike[str]
Param = int | Fraction | str | bool | tuple[int, ...]
Level = Literal[0, 1, 2, 3]
Verify = Literal["each", "full", "off"]

LOG = logging.getLogger("collc")
LOG.addHandler(logging.NullHandler())


@attrs.frozen
class Request:
    """The options of ``collc.compile_source``, with its defaults."""

    target: str | Sequence[str] | None = None
    params: Mapping[str, Param] | None = None
    topologies: Mapping[str, Topology | networkx.Graph] | None = None
    include_path: Sequence[Path] = ()
    collective: str | Sequence[str] = ()
    level: Level = 2
    passes: str | None = None
    disable_passes: Iterable[str] = ()
    verify: Verify = "each"
    node_limit: int = 20000
    cache: bool | Path = False
    executor: Executor | None = None

    def checked(self) -> Request:
        """Return the request with lists as tuples; raise C0001 for an option of a wrong type.

        The values of options, such as the names of targets, are checked where they are used.
        """
        accepted.require_params(self.params)
        accepted.require_topologies(self.topologies)
        accepted.require_cache(self.cache)
        if self.passes is not None:
            accepted.text("passes", self.passes, "a text with a pipeline")
        if isinstance(self.node_limit, bool) or not isinstance(self.node_limit, SupportsIndex):
            accepted.refuse("node_limit", self.node_limit, "a whole number")
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            accepted.refuse("executor", self.executor, "an executor of concurrent.futures")
        return attrs.evolve(
            self,
            target=None
            if self.target is None
            else accepted.names("target", self.target, "a target, or a list of them"),
            include_path=accepted.paths("include_path", self.include_path, "a list of folders"),
            collective=accepted.names("collective", self.collective, "the name of a collective, or a list of names"),
            disable_passes=accepted.names("disable_passes", self.disable_passes, "a list of passes"),
        )

    @property
    def only(self) -> tuple[str, ...]:
        """The names of the chosen collectives."""
        return (self.collective,) if isinstance(self.collective, str) else tuple(self.collective)

    @property
    def loading(self) -> Loading:
        """How to read the text."""
        return loading_of(self.params, self.topologies, self.include_path, self.node_limit)

    @property
    def settings(self) -> Settings:
        """How to compile it."""
        return Settings(recipe_of(self.level, self.passes, self.disable_passes), verify_mode(self.verify))

    @property
    def facts(self) -> list[object]:
        """Everything here that can change a result, as numbers and texts."""
        target = [] if self.target is None else [self.target] if isinstance(self.target, str) else list(self.target)
        params = sorted((name, str(value)) for name, value in (self.params or {}).items())
        folders = [os.fspath(folder) for folder in self.include_path]
        chosen = [target, params, folders, list(self.only)]
        return [*chosen, self.level, self.passes, list(self.disable_passes), self.verify, self.node_limit]


def compiled(text: str, path: str, request: Request, watch: Watch | None) -> Result:
    """Compile a text; ``watch`` takes the progress. Raises C0001 for options of wrong types."""
    request = request.checked()
    loading, settings = request.loading, request.settings
    spec, start = load(text, path, "compile", ReadOptions(loading))
    jobs, warnings = make_jobs(spec, targets_of(request.target), request.only, start)
    if any(job.targets for job in jobs):
        jobs = [job for job in jobs if job.targets]
    spec = with_read_files(spec, jobs)

    def run() -> list[CollectiveResult]:
        return run_jobs(jobs, settings, executor=request.executor, progress=watch, observer=watch)

    store = store_of(request.cache)
    if store is None:
        results = run()
    else:
        from .driver.keeping import kept_or_run, key_of

        key = key_of(spec, text, path, request.facts, loading.topologies)
        results = kept_or_run(store, key, jobs, settings, run)
        if watch is not None and all(result.is_kept for result in results):
            watch("done", len(results), len(results))
    found = [*spec.warnings, *warnings, *(warning for result in results for warning in result.warnings)]
    blocks = tuple(dict.fromkeys(job.block for job in jobs if job.block is not None))
    result = Result(spec, {result.name: result for result in results}, tuple(found), blocks=blocks)
    _log(result)
    return result


def possible(path: str, request: Request, library: str) -> tuple[Result, list[Diagnostic]]:
    """Compile a file as :func:`compiled` does, and leave to ``library`` what cannot be scheduled or written.

    Also returns a warning for each such collective. ``request`` names no cache.
    """
    request = request.checked()
    text = read_text(path)
    spec, start = load(text, path, "compile", ReadOptions(request.loading))
    jobs, warnings = make_jobs(spec, targets_of(request.target), request.only, start)
    results, left = without_impossible(try_jobs(jobs, request.settings, executor=request.executor), library)
    found = [*spec.warnings, *warnings, *(warning for result in results for warning in result.warnings)]
    return Result(spec, {result.name: result for result in results}, tuple(found)), left


def store_of(cache: bool | Path) -> Store | None:
    """Return the store of ``cache=``; None without one, and if the user's own cache folder cannot be used."""
    if cache is False:
        return None
    from .files.store import default_folder, opened

    if cache is not True:
        return opened(os.path.abspath(os.fspath(cache)))
    try:
        return opened(default_folder(os.environ))
    except CollcError as flaw:
        LOG.warning("%s", flaw)
        return None


def _log(result: Result) -> None:
    for found in result.diagnostics:
        LOG.warning("%s", found)
    for one in result:
        if one.is_kept:
            LOG.info("%s: from the cache", one.name)
        for remark in one.remarks:
            LOG.info("%s: %s", one.name, remark)
        for timing in one.timings:
            LOG.debug("%s: %s: %.6f s", one.name, timing.step, timing.seconds)


# ---- many


def each(
    items: Iterable[Path | Item], common: Options, executor: Executor | None, watch: Watch | None
) -> list[Result | CollcError]:
    """Compile every item, and return a result or an error for each, in order.

    Raises C0001 for what is no list of items, and TypeError for a keyword that ``collc.compile_many`` does not have.
    """
    from .processes.workers import Work

    for name in sorted(set(common) - _OPTIONS):
        raise TypeError(f"compile_many() got an unexpected keyword argument {name!r}")
    if isinstance(items, (str, bytes, os.PathLike, Mapping)) or not isinstance(items, Iterable):
        accepted.refuse("items", items, "a list of paths and mappings", hint="write `compile_many([..])`")
    listed = [_item(place, one, common) for place, one in enumerate(items)]
    calls = [(one, watch if executor is None else None) for one in listed]
    return Work(executor, watch).run(_outcome, calls, [_name(one) for one in listed])


_OPTIONS = {field.name for field in attrs.fields(Request)} - {"executor"}


def _item(place: int, item: Path | Item, common: Options) -> Item:
    """Return an item with the common options; raise C0001, which names its place, for what is none."""
    what = f"items[{place}]"
    if not isinstance(item, (str, os.PathLike, Mapping)):
        accepted.refuse(what, item, 'a path, or a mapping with a "path" or a "text"')
    own: Item = {"path": item} if isinstance(item, (str, os.PathLike)) else item
    for name in own:
        if name not in _OPTIONS | {"path", "text"}:
            hint = nearest(str(name), _OPTIONS) or f"options are {', '.join(sorted(_OPTIONS))}"
            message = f"found the option {clipped(repr(name))} in {what}, which compile_many does not have"
            raise error("C0001", message, hint=hint, exit_status=2)
    own = {key: value for key, value in own.items() if value is not None or key not in ("path", "text")}  # type: ignore[assignment]  # only keys are left out
    if "path" not in own and "text" not in own:
        accepted.refuse(what, item, 'an item with a "path" or a "text"')
    if "path" in own:
        own = {**own, "path": accepted.path(f'{what}["path"]', own["path"])}
    if "text" in own:
        accepted.text(f'{what}["text"]', own["text"], "a text of the language")
    return {**common, **own}


def _name(item: Item) -> str:
    return os.fspath(item.get("path", "<string>"))


def _outcome(item: Item, watch: Watch | None) -> Result | CollcError:
    path, text = _name(item), item.get("text")
    options = {name: value for name, value in item.items() if name not in ("path", "text")}

    def work() -> Result:
        request = Request(**options)  # type: ignore[arg-type]  # _item checked the names
        return compiled(read_text(path) if text is None else text, path, request, watch)

    try:
        return shielded("compile", work)
    except CollcError as mistake:
        return mistake


# ---- arguments


def loading_of(
    params: Mapping[str, Param] | None,
    topologies: Mapping[str, Topology | networkx.Graph] | None,
    include_path: Sequence[Path],
    node_limit: int,
) -> Loading:
    """Return the options of reading; networkx graphs become topologies."""
    given = {name: network(found) for name, found in (topologies or {}).items()}
    return Loading(dict(params or {}), tuple(os.fspath(p) for p in include_path), node_limit, given)


def text_of(source: Path) -> tuple[str, str]:
    """Return the text of a path, or a text itself, and its name in messages."""
    if isinstance(source, str) and ("\n" in source or ";" in source):
        return source, "<string>"
    name = os.fspath(source)
    return read_text(name), name


def network(found: Topology | networkx.Graph) -> Topology:
    """Return a topology, or that of a graph."""
    return found if isinstance(found, Topology) else Topology.from_networkx(found)


def targets_of(target: str | Sequence[str] | None) -> tuple[Element, ...]:
    """Return the targets of ``target=``; raise C0006 if a text cannot be read."""
    given = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    return tuple(element for text in given for element in parse_elements(text, "target"))


def recipe_of(level: int, passes: str | None, disabled: Iterable[str]) -> Recipe:
    """Return the pipeline; raise C0001 for a level that does not exist, C0006 for passes that cannot be read."""
    if str(level) not in LEVELS:
        raise error("C0001", f"there is no level {level}: levels are 0 to {len(LEVELS) - 1}", exit_status=2)
    elements = None if passes is None else parse_elements(passes, "passes")
    return Recipe(str(level), elements, tuple(disabled))


def verify_mode(mode: str) -> str:
    """Return the mode; raise C0001 for another word."""
    if mode not in ("each", "full", "off"):
        raise error("C0001", f"verify needs one of each, full, off, found `{mode}`", exit_status=2)
    return mode


def shielded(what: str, work: Callable[[], T]) -> T:
    """Return the result of ``work``; other exceptions become a CollcError.

    Diagnostics of plugins are added.
    """
    return contained(what, lambda: _consulted(work))


def _consulted(work: Callable[[], T]) -> T:
    try:
        with consulting() as plugin_diagnostics:
            result = work()
            if plugin_diagnostics and isinstance(result, Result):
                return attrs.evolve(result, diagnostics=(*result.diagnostics, *plugin_diagnostics))
            return result
    except InternalError:
        raise
    except CollcError as mistake:
        if plugin_diagnostics:
            raise CollcError([*mistake.diagnostics, *plugin_diagnostics], mistake.exit_status) from mistake.__cause__
        raise
