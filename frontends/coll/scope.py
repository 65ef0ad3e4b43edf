"""Names and their values while a file is elaborated."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Span, error
from collc.ir.frozen import frozen
from collc.ir.node_names import node_text, printed, split_name
from collc.ir.topology import Topology

from ..units import BANDWIDTH, SIZE, TIME
from .codes import CODES
from .families import FUNCTIONS
from .values import Switch, Value

if TYPE_CHECKING:
    from . import ast
    from .guesses import Vocabulary

__all__ = [
    "POISON",
    "THE_IMPORT",
    "THE_NAME",
    "Binding",
    "Cell",
    "Constant",
    "Function",
    "Listing",
    "NodeTable",
    "Poison",
    "Poisoned",
    "Problems",
    "Procedure",
    "Scope",
    "TooManyProblems",
    "Variable",
    "earlier",
    "shape_of",
    "too_early",
]


_MAX_PROBLEMS = 100
#: the message of the second place of a mistake in an imported file
THE_IMPORT = "the import"
#: that of a mistake in a file of weights
THE_NAME = "the name of the file"
#: measure -> a value for an example
_EXAMPLES = {SIZE: "64 MiB", BANDWIDTH: "25 GB/s", TIME: "10 us"}


class Poisoned(Exception):
    """An expression uses a value whose mistake has been reported already."""


@frozen
class Constant:
    """A name with a value."""

    value: Value


@frozen
class Variable:
    """A variable: its place in the frame of the body it belongs to."""

    index: int


@attrs.define
class Cell:
    """A variable of a comprehension, with its value at the moment."""

    value: Value | None = None


@attrs.define(eq=False)
class Function:
    """A function of a file: ``value`` of the values in ``cells``, one for each parameter.

    ``height`` is the number of levels of its expression, with those of the functions that it calls.
    """

    parameters: tuple[str, ...]
    cells: tuple[Cell, ...]
    value: Callable[[list[Any]], Any]  # Any: see `expressions.Thunk`
    height: int


@attrs.define(eq=False)
class Procedure:
    """A block that ``call`` runs: its ``node``, and the ``scope`` that its names belong to.

    ``has_steps``: it or a block that it calls has ``at``. ``height`` is the number of its levels, with those of the
    blocks that it calls.
    """

    node: ast.Procedure
    scope: Scope
    has_steps: bool
    height: int


@attrs.define(eq=False)
class Listing:
    """A list that is no set: its ``node`` is computed in ``scope`` where a list stands. Elsewhere it is a ``failure``.

    ``used`` is whether it stands for a list anywhere.
    """

    node: ast.Expr
    scope: Scope
    failure: CollcError
    used: bool = False


class Poison:
    """A value that could not be computed; its use is not reported again."""


POISON = Poison()

Binding: TypeAlias = Constant | Variable | Cell | Function | Procedure | Listing | Poison


class TooManyProblems(Exception):
    """The number of mistakes has reached the limit of one report."""


class Problems:
    """The mistakes found so far; the same mistake at the same place is kept once.

    A mistake in a hidden text keeps its place and code. Its message is the code's title, since other messages quote.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[object, ...], Diagnostic] = {}
        self.warnings: dict[str, Diagnostic] = {}

    def add(self, *diagnostics: Diagnostic) -> None:
        """Add mistakes; raise Enough where there are too many."""
        for diagnostic in map(_unquoted, diagnostics):
            key = (diagnostic.code, str(diagnostic.span), diagnostic.message if diagnostic.span is None else "")
            self.found.setdefault(key, diagnostic)
        if len(self.found) >= _MAX_PROBLEMS:
            raise TooManyProblems

    def warn(self, diagnostic: Diagnostic, each: bool = False) -> None:
        """Keep a warning, once for each place; several of a place if their texts differ and ``each`` is true."""
        key = f"{diagnostic.span} {diagnostic.message}" if each else str(diagnostic.span)
        self.warnings.setdefault(key, _unquoted(diagnostic))

    def take(self, failure: CollcError, span: Span | None = None, notes: Iterable[str] = ()) -> None:
        """Add the diagnostics of an exception, placed at ``span`` where they have no place of their own."""
        for diagnostic in failure.diagnostics:
            placed = attrs.evolve(diagnostic, span=diagnostic.span or span, notes=(*diagnostic.notes, *notes))
            self.add(placed)


def _unquoted(diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic, without quotations if its text is hidden."""
    if diagnostic.span is None or not diagnostic.span.source.hidden:
        return diagnostic
    from collc.ir.codes import CODES as OF_COLLECTIVES

    from ..importing.codes import CODES as IMPORTED

    title = {**CODES, **IMPORTED, **OF_COLLECTIVES}.get(diagnostic.code, "a mistake").partition("\n")[0]
    note = "its text is not shown: the file is outside of the main file's folder and of those of `-I`"
    related = tuple(one for one in diagnostic.related if one.message in (THE_IMPORT, THE_NAME))
    return attrs.evolve(diagnostic, message=f"found {title}", notes=(note,), hint="`-I` adds a folder", related=related)


@frozen
class NodeTable:
    """The nodes of a topology by name: family -> indices -> rank number or switch.

    ``declaring``: its body is being read. ``places`` are the declarations, where known.
    """

    families: dict[str, dict[tuple[int, ...], int | Switch]] = attrs.field(factory=dict)
    declaring: bool = False
    places: dict[str, Span | None] = attrs.field(factory=dict)

    @classmethod
    def of(cls, topology: Topology) -> NodeTable:
        """Return the table of a topology whose nodes have names; an empty one where they have none."""
        table = cls()
        for number, name in enumerate(topology.node_names or ()):
            family, indices = split_name(name)
            node = number if number < topology.num_ranks else Switch(number - topology.num_ranks)
            table.families.setdefault(family, {})[indices] = node
        return table

    def has(self, text: str) -> bool:
        """Return whether a node has this printed name."""
        family, indices = split_name(text)
        return indices in self.families.get(family, {})

    def named(self, text: str, span: Span | None) -> int | Switch:
        """Return the node with a printed name; raise C0120 if there is none, C0135 if its family has no such index."""
        family, indices = split_name(text)
        if indices not in self.families.get(family, {}) and (match := _SPACED.fullmatch(text)):
            family, indices = match[1], tuple(int(index) for index in re.findall("[0-9]+", match[2]))
        if family in self.families:
            return self.find(family, indices, span)
        raise error("C0120", f"unknown node `{text}`", span=span, hint=self._hint(text))

    def _hint(self, text: str) -> str:
        from .guesses import nearest_node

        if near := nearest_node(text, self.names()):
            return f"did you mean `{node_text(near)}`?"
        if self.declaring:
            return f"declare it above: `rank {node_text(text)};` or `switch {node_text(text)};`"
        if not self.families:
            return "ranks of this topology have numbers only, from 0: write the number alone"
        shown = [node_text(name) for name, _ in zip(self.names(), range(4), strict=False)]
        return f"its nodes are {', '.join(f'`{name}`' for name in shown)}{', ..' * (len(shown) == 4)}"

    def names(self) -> Iterator[str]:
        """Yield the printed names of all nodes."""
        return (printed(name, indices) for name, family in self.families.items() for indices in family)

    def find(self, name: str, indices: tuple[int, ...], span: Span | None) -> int | Switch:
        """Return the node; raise C0135 where the family has no such index, or needs others."""
        family = self.families[name]
        if (node := family.get(indices)) is not None:
            return node
        shape, related = shape_of(family, len(indices)), earlier(self.places.get(name), "the declaration")
        if len(indices) != len(shape):
            found = f"found {len(indices)} {'index' if len(indices) == 1 else 'indices'} of `{name}`"
            message = f"{found if indices else f'found `{name}` without indices'}, needed {len(shape)}"
            hint = f"write `{_first(name, family)}`"
            if self.declaring and not indices and len(shape) == 1 and shape[0] > 1:
                hint += f"; for all of them, `for i in 0..{shape[0]} {{ .. {node_text(name)}[i] .. }}`"
            raise error("C0135", message, span=span, hint=hint, related=related)
        if all(0 <= index < size for index, size in zip(indices, shape, strict=True)):
            hint = "`without` or `subset` left it out; a switch goes when it no longer joins nodes"
            message = f"found `{printed(name, indices)}`, which the topology no longer has"
            raise error("C0135", message, span=span, hint=hint)
        message = f"found `{printed(name, indices)}`, needed one of {_extent(name, family, len(indices))}"
        raise error("C0135", message, span=span, hint="indices count from 0", related=related)


#: a node as the user may write it in quotes, with any blanks
_SPACED = re.compile(r"(.+?)\s*\[\s*([0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*)\s*\]")


def _first(name: str, family: Collection[tuple[int, ...]]) -> str:
    """Return the first node of a family, as an example of its indices."""
    return node_text(printed(name, min(family)))


def _extent(name: str, family: Collection[tuple[int, ...]], count: int) -> str:
    nodes = [indices for indices in family if len(indices) == count]
    return f"`{printed(name, min(nodes))}` to `{printed(name, max(nodes))}`"


def shape_of(family: Collection[tuple[int, ...]], count: int) -> tuple[int, ...]:
    """Return the sizes of a family of nodes, one for each index.

    Names in quotes may have different numbers of indices: the sizes are of those with ``count``, if there are any.
    """
    nodes = [indices for indices in family if len(indices) == count]
    alike = nodes or [indices for indices in family if len(indices) == len(min(family))]
    return tuple(max(axis) + 1 for axis in zip(*alike, strict=True))


@attrs.define
class Scope:
    """Names of one body, and those of the text around it.

    ``later`` are names that the same body declares further on, with their declarations; ``suspects`` are names that a
    faulty statement may have declared. ``given`` are the places of values on the command line. An ``incomplete`` scope
    lacks names of a file that could not be included.
    """

    parent: Scope | None = None
    names: dict[str, Binding] = attrs.field(factory=dict)
    places: dict[str, Span | None] = attrs.field(factory=dict)
    later: dict[str, Span | None] = attrs.field(factory=dict)
    suspects: set[str] = attrs.field(factory=set)
    nodes: NodeTable | None = None
    given: dict[str, Span] = attrs.field(factory=dict)
    incomplete: bool = False
    level: int = 1  # 0 what the language names itself, 1 the file, 2 a body

    def child(self) -> Scope:
        """Return a scope inside this one."""
        return Scope(parent=self, level=self.level)

    def declare(self, name: str, binding: Binding, span: Span | None) -> None:
        """Bind a name; raise C0121 where this text has bound it already.

        What a body declares may hide a name of the file around it, not another name of the body.
        """
        before = self.declaring(name)
        if before is not None:
            message, hint = f"`{name}` is declared twice", "rename one of them"
            raise error("C0121", message, span=span, hint=hint, related=earlier(before.places.get(name)))
        self.names[name] = binding
        self.places[name] = span
        self.later.pop(name, None)

    def declaring(self, name: str) -> Scope | None:
        """Return the scope of this body that binds a name, or None."""
        return next((scope for scope in self.chain() if scope.level == self.level and name in scope.names), None)

    def find(self, name: str) -> Binding | None:
        """Return the binding of a name, or None."""
        for scope in self.chain():
            if name in scope.names:
                return scope.names[name]
        return POISON if any(name in scope.suspects for scope in self.chain()) else None

    def find_nodes(self, name: str) -> NodeTable | None:
        """Return the table of nodes that has a family of this name, or None."""
        tables = (scope.nodes for scope in self.chain())
        return next((table for table in tables if table is not None and name in table.families), None)

    def chain(self) -> list[Scope]:
        """Return this scope and those around it, innermost first."""
        scopes: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            scopes.append(scope)
            scope = scope.parent
        return scopes

    def node_named(self, text: str, span: Span | None) -> int | Switch:
        """Return the node with a printed name; raise C0120, C0130 or C0135 if there is none, and Poisoned if a
        statement with a mistake may declare it.
        """
        family, _ = split_name(text)
        table = self.find_nodes(family) or next(
            (scope.nodes for scope in self.chain() if scope.nodes is not None), NodeTable()
        )
        if family not in table.families and text not in table.families:
            for scope in self.chain():
                if scope.level == 2 and text in scope.later:
                    raise too_early(text, scope.later[text], span)
            if any({text, family} & scope.suspects for scope in self.chain()):
                raise Poisoned
        return table.named(text, span)

    def undefined(self, name: str, span: Span | None, needs: tuple[str, ...], vocabulary: Vocabulary) -> CollcError:
        """Return the error for a name that is not visible here; its hint is of a kind that the place needs.

        Raises Poisoned if a file that could not be included may declare it.
        """
        for scope in self.chain():
            if name in scope.later:
                return too_early(name, scope.later[name], span)
        self.require_complete(name)
        given = span is not None and span.source.path.startswith("<-D")
        known = name.lower() if name.lower() in ("true", "false") else "4` or `25 GB/s"
        hint = f"write a value, such as `{known}`" if given else self._hint(name, needs, vocabulary)
        return error("C0120", f"unknown name `{name}`", span=span, hint=hint)

    def require_complete(self, name: str) -> None:
        """Raise Poisoned if a file that could not be included may declare a name, unless it resembles a known one."""
        from .guesses import did_you_mean

        scopes = self.chain()
        if any(scope.incomplete for scope in scopes):
            known = {known for scope in scopes for known in scope.names} | self._families()
            if did_you_mean(name, known) is None:
                raise Poisoned

    def _hint(self, name: str, needs: tuple[str, ...], vocabulary: Vocabulary) -> str:
        from .guesses import did_you_mean

        declared = {name for scope in self.chain() for name, bound in scope.names.items() if _fits(bound, needs)}
        if "topology" in needs:
            return vocabulary.hint(name, "topology", declared) or f"declare it above: `topology {name} = torus(4, 4);`"
        if "string" in needs:
            return f'write it in quotes: `"{name}"`'
        families = self._families()
        numbered = re.fullmatch(r"([A-Za-z_]+?)_?(\d+)", name)
        if numbered and numbered[1] in families:
            return f"write `{numbered[1]}[{numbered[2]}]`"
        if name.lower() not in ("true", "false"):
            declared -= {"true", "false"}
        known = declared | (families if "node" in needs or "number" not in needs else set())
        if hint := did_you_mean(name, known):
            return hint
        if "node" in needs:
            return self._node_hint(name)
        if name in FUNCTIONS:
            return f"`{name}` is a function: write `{FUNCTIONS[name]}`"
        kind = vocabulary.kind_of(name)
        example = next((_EXAMPLES[need] for need in needs if need in _EXAMPLES), "4")
        declare = f"declare it above: `param {name} = {example};`"
        return f"`{name}` is {kind}" if kind else declare

    def _node_hint(self, name: str) -> str:
        """Return what to write for an unknown node: its declaration, or a node that exists."""
        if any(scope.nodes is not None and scope.nodes.declaring for scope in self.chain()):
            return f"declare it above: `rank {name};` or `switch {name};`"
        if families := sorted(self._families()):
            return f"the nodes are {', '.join(f'`{family}`' for family in families)}"
        return "ranks of this topology have numbers only, from 0: write the number alone"

    def undefined_family(self, name: str, indices: int, span: Span | None) -> CollcError:
        """Return the error for an indexed name that is not a family of nodes here."""
        for scope in self.chain():
            if name in scope.later and scope.level == 2:
                return too_early(name, scope.later[name], span)
        return error("C0120", f"unknown family of nodes `{name}`", span=span, hint=self._family_hint(name, indices))

    def _family_hint(self, name: str, indices: int) -> str | None:
        from .guesses import did_you_mean

        tables = [scope.nodes for scope in self.chain() if scope.nodes is not None]
        if hint := did_you_mean(name, self._families()):
            return hint
        if any(table.declaring for table in tables):
            shape = ", ".join(["8"] * indices)
            return f"declare it above: `rank {name}[{shape}];` or `switch {name}[{shape}];`"
        if tables and not self._families():
            return "ranks of this topology have numbers only, from 0: write the number alone"
        return f"there are {', '.join(f'`{family}`' for family in sorted(self._families()))}" if tables else None

    def _families(self) -> set[str]:
        return {family for scope in self.chain() if scope.nodes for family in scope.nodes.families}


def _fits(bound: Binding, needs: tuple[str, ...]) -> bool:
    """Return whether a name may stand where ``needs`` are needed, as far as its value is known."""
    if not isinstance(bound, Constant) or not needs:
        return True
    if isinstance(bound.value, bool):
        return False
    return isinstance(bound.value, Topology) == ("topology" in needs)


def earlier(span: Span | None, what: str = "the first declaration") -> tuple[Related, ...]:
    """Return the place that explains a mistake, if there is one, and what stands there."""
    return (Related(what, span),) if span else ()


def too_early(name: str, declared: Span | None, used: Span | None) -> CollcError:
    """Return the error C0130 for a name that is used in or before its declaration."""
    if declared and used and _within(used, declared):
        hint = "a value is computed from names that are declared before it"
        return error("C0130", f"`{name}` is used in its own definition", span=used, hint=hint)
    related, hint = earlier(declared, "the declaration"), "move the declaration up"
    return error("C0130", f"`{name}` is used before its declaration", span=used, hint=hint, related=related)


def _within(inner: Span, outer: Span) -> bool:
    start, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return inner.source is outer.source and start <= (inner.line, inner.column) < end
