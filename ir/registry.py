"""Tables of named objects: passes, schedulers, targets, graph families and formats of files, one table each.

A table lists its entries without importing them. Another installed package adds entries by an entry point of the group
``collc.plugins``, which names a :class:`Plugin`. A table imports plugins only if a name is not collc's own, or if all
names are listed. So a compilation without plugins imports none. A plugin cannot replace collc's own names. If two
plugins add one name, the first counts, in the order of the plugins' names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .diagnostic import Diagnostic

__all__ = ["GROUP", "Entry", "Plugin", "Registry", "consulting", "forget", "load", "reported"]

#: the group of entry points by which installed packages bring plugins
GROUP = "collc.plugins"

E = TypeVar("E")

_NO_ENTRIES: Mapping[str, object] = MappingProxyType({})
_PROBLEMS: ContextVar[list[Diagnostic] | None] = ContextVar("problems", default=None)


class Entry(tuple[str, str, str]):
    """One entry: module and attribute, imported at first use, and a one-line summary.

    >>> Entry("my_package.repeats", "DropRepeats", "leave out transfers of data that are there already")[1]
    'DropRepeats'
    """

    __slots__ = ()

    def __new__(cls, module: str, attribute: str, summary: str) -> Entry:
        return super().__new__(cls, (module, attribute, summary))


class Plugin:
    """The entries that a package adds, by name, in the form of collc's own tables.

    ``passes`` and ``targets`` are :class:`Entry`, ``schedulers`` :class:`collc.passes.schedulers.Scheduler`,
    ``families`` :class:`collc.frontends.coll.families.Construction`, ``formats`` :class:`collc.reading.Format`,
    ``imports`` :class:`collc.frontends.importing.formats.Importer`. All name their modules in full.

    >>> plugin = Plugin(passes={"drop-repeats": Entry("my_package.repeats", "DropRepeats", "leave out repeats")})
    >>> list(plugin.passes), list(plugin.targets)
    (['drop-repeats'], [])
    """

    FIELDS = ("passes", "targets", "schedulers", "families", "formats", "imports")

    def __init__(
        self,
        *,
        passes: Mapping[str, object] = _NO_ENTRIES,
        targets: Mapping[str, object] = _NO_ENTRIES,
        schedulers: Mapping[str, object] = _NO_ENTRIES,
        families: Mapping[str, object] = _NO_ENTRIES,
        formats: Mapping[str, object] = _NO_ENTRIES,
        imports: Mapping[str, object] = _NO_ENTRIES,
    ) -> None:
        self.passes, self.targets, self.schedulers = passes, targets, schedulers
        self.families, self.formats, self.imports = families, formats, imports


class _Installed:
    """The installed plugins, each with its package, and the problems of those that cannot be used."""

    def __init__(self, plugins: list[tuple[str, Plugin]], problems: list[Diagnostic]) -> None:
        self.plugins, self.problems = plugins, problems


class _Added(Generic[E]):
    """The additions of plugins to one table: entries, the package of each, and the problems of refused ones."""

    def __init__(self, installed: _Installed) -> None:
        self.installed = installed
        self.entries: dict[str, E] = {}
        self.packages: dict[str, str] = {}
        self.problems: list[Diagnostic] = []


class Registry(MutableMapping[str, E]):
    """The table of one ``kind`` of objects: collc's ``own`` entries, and those of plugins in some ``fields``.

    Looking up a name imports plugins only if it is not collc's own; iterating over all names always does. All entries
    are ``of`` one class. ``reserved`` returns names outside the table that no plugin may add. ``listed`` is a hint
    where to find the names if they are too many for a message. ``renamed`` maps former names to current ones. Raises
    ValueError for a duplicate name.
    """

    def __init__(
        self,
        kind: str,
        fields: tuple[str, ...],
        *tables: Mapping[str, E],
        of: type = tuple,
        listed: str = "",
        reserved: Callable[[], Iterable[str]] = tuple,
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.kind, self.own, self.renamed = kind, dict[str, E](), renamed
        self._fields, self._class, self._reserved, self._listed = fields, of, reserved, listed
        self._found: _Added[E] | None = None
        for table in tables:
            self.update(table)

    def __setitem__(self, name: str, entry: E) -> None:
        if name in self.own:
            raise ValueError(f"there is a {self.kind} `{name}` already")
        self.own[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def __getitem__(self, name: str) -> E:
        return self.own[name] if name in self.own else self.brought()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.brought()

    def __iter__(self) -> Iterator[str]:
        return iter((*self.own, *self.brought()))

    def __len__(self) -> int:
        return len(self.own) + len(self.brought())

    def brought(self) -> Mapping[str, E]:
        """Return the entries of plugins; problems of plugins go to :func:`consulting`."""
        found = self._brought()
        _report((*found.installed.problems, *found.problems))
        return found.entries

    def package(self, name: str) -> str | None:
        """Return the package that adds a name; None if it is collc's own or unknown."""
        return None if name in self.own else self._brought().packages.get(name)

    def hint(self, name: str) -> str:
        """Return a hint for an unknown name: its new name, the nearest known name, or where all names are listed."""
        from .diagnostic import nearest

        if name in self.renamed:
            return f"`{name}` is called `{self.renamed[name]}` now"
        return nearest(name, self) or self._listed or f"there are {', '.join(self)}"

    # Any: a class or a function, which the caller knows
    def load(self, name: str) -> Any:
        """Return the object of a name; raise C0891 if it is a plugin's and cannot be imported."""
        module, attribute = self[name][:2]  # type: ignore[index]  # entries begin with these
        return load(module, attribute, f"the {self.kind} `{name}`", self.package(name))

    def complain(self, name: str, problem: BaseException) -> None:
        """Report to :func:`consulting` that an entry of a plugin failed."""
        _report((_broken(f"{self.package(name)}", f"fails at the {self.kind} `{name}`: {_reason(problem)}"),))

    def _brought(self) -> _Added[E]:
        installed = _installed()
        if self._found is None or self._found.installed is not installed:
            self._found = self._merged(installed)
        return self._found

    def _merged(self, installed: _Installed) -> _Added[E]:
        added = _Added[E](installed)
        ours = {*self.own, *(self._reserved() if installed.plugins else ())}
        for package, plugin in installed.plugins:
            for name, entry in (pair for field in self._fields for pair in getattr(plugin, field).items()):
                if name in ours or name in added.entries:
                    owner = added.packages.get(name, "collc")
                    added.problems.append(_taken(package, self.kind, name, owner))
                elif isinstance(entry, self._class):
                    added.entries[name], added.packages[name] = cast("E", entry), package
                else:
                    found = f"describes the {self.kind} `{name}` by {entry!r:.80}, which is no {self._class.__name__}"
                    added.problems.append(_broken(package, found))
        return added


# Any: the attribute may have any type
def load(module: str, attribute: str, what: str, package: str | None) -> Any:
    """Return an attribute of a module; raise C0891 if a plugin's module lacks it, or fails to import."""
    if package is None:
        return getattr(import_module(module), attribute)
    try:
        return getattr(import_module(module), attribute)
    except MemoryError:
        raise
    except (Exception, SystemExit) as problem:
        from .diagnostic import error

        raise error("C0891", f"{what} of the package `{package}` cannot be loaded: {_reason(problem)}") from None


@contextmanager
def consulting() -> Iterator[list[Diagnostic]]:
    """Collect the distinct problems of the plugins that are used inside."""
    collected: list[Diagnostic] = []
    token = _PROBLEMS.set(collected)
    try:
        yield collected
    finally:
        _PROBLEMS.reset(token)


def reported() -> tuple[Diagnostic, ...]:
    """Return what the innermost :func:`consulting` has collected so far."""
    return tuple(_PROBLEMS.get() or ())


def _report(problems: Iterable[Diagnostic]) -> None:
    collected = _PROBLEMS.get()
    if collected is not None:
        collected.extend(problem for problem in problems if problem not in collected)


# ---- what is installed


def forget() -> None:
    """Forget which plugins are installed, so that the next use looks again."""
    _installed.cache_clear()


@functools.cache
def _installed() -> _Installed:
    """Import the descriptions of all plugins, once per process."""
    from importlib.metadata import entry_points  # slower than a whole listing without it

    plugins: list[tuple[str, Plugin]] = []
    problems: list[Diagnostic] = []
    for _, value, package in sorted({(p.name, p.value, _package(p)) for p in entry_points(group=GROUP)}):
        module, _, attribute = value.partition(":")
        try:
            found = getattr(import_module(module.strip()), attribute.strip())
        except MemoryError:
            raise
        except (Exception, SystemExit) as problem:
            problems.append(_broken(package, f"cannot be imported: {_reason(problem)}"))
            continue
        if isinstance(found, Plugin) and all(isinstance(getattr(found, f), Mapping) for f in Plugin.FIELDS):
            plugins.append((package, found))
        else:
            problems.append(_broken(package, f"is not a Plugin of tables: `{value}` is {found!r:.80}"))
    return _Installed(plugins, problems)


def _package(point: EntryPoint) -> str:
    return str(point.dist.name) if point.dist is not None else "unknown"


def _reason(problem: BaseException) -> str:
    """Return an exception's text in one line."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def _broken(package: str, what: str) -> Diagnostic:
    from .diagnostic import warning

    return warning("C0891", f"the plugin of the package `{package}` {what}")


def _taken(package: str, kind: str, name: str, owner: str) -> Diagnostic:
    from .diagnostic import warning

    message = f"the plugin of the package `{package}` adds a {kind} `{name}`, which {owner} has already"
    return warning("C0892", message, notes=[f"`{name}` is the {kind} of {owner}"])
