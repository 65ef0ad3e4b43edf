"""Compiles expressions to closures over a frame of variables, because a body's loops run them a million times.

Names are resolved when an expression is compiled, so that an unknown one is reported even if it is never evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, pairwise, product
from math import ceil, floor
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import attrs

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.frozen import frozen
from collc.ir.topology import Topology

from ..units import MEASURES, UNITS
from . import ast
from .functions import Calls, called, unknown
from .printer import expression_text, number_text
from .scope import (
    POISON,
    Cell,
    Constant,
    Function,
    Listing,
    NodeTable,
    Poison,
    Poisoned,
    Problems,
    Procedure,
    Scope,
    Variable,
    earlier,
    shape_of,
)
from .values import (
    Arrow,
    Integers,
    Parts,
    Quantity,
    Switch,
    Value,
    arithmetic,
    bounded,
    compared,
    extent,
    kind_of,
    whole,
)

if TYPE_CHECKING:
    from .guesses import Vocabulary

__all__ = [
    "NODE", "NUMBER", "TOPOLOGY", "Compiler", "Frame", "Functions", "Needs", "Rounds", "Thunk", "integer", "members",
    "past_hint",
]  # fmt: skip

#: Larger sets are refused before they are built.
MAX_SET = 100_000
#: The most values that the variables of one comprehension take.
_MAX_ROUNDS = 1 << 20
#: The most loops and conditions of one comprehension.
_MAX_CLAUSES = 16

T = TypeVar("T")

Frame: TypeAlias = list[Any]  # Any: values, and what a body keeps between its statements
Thunk: TypeAlias = Callable[[Frame], Any]  # Any: a value or POISON; who computes with it asks which
#: What fits at a place, for hints: measures of units, ``topology``, ``node``, ``number``; empty if anything does.
Needs: TypeAlias = tuple[str, ...]
NUMBER: Needs = ("number",)
TOPOLOGY: Needs = ("topology",)
NODE: Needs = ("node",)


class Functions(Protocol):
    """What ``name(arguments)`` may stand for."""

    def require(self, node: ast.Call, needs: Needs, vocabulary: Callable[[], Vocabulary]) -> None:
        """Raise C0122 unless the function exists; C0131 if an argument is a set where a number is needed."""

    def families(self) -> Sequence[str]:
        """Return the names of the functions that return a topology."""

    def names(self) -> Collection[str]:
        """Return the names of all functions, which no function of a file may have."""

    def needs(self, node: ast.Call) -> Sequence[Needs]:
        """Return what fits as each argument."""

    def bracketed(self, node: ast.Index) -> CollcError | None:
        """Return the error for a function whose arguments stand in ``[ ]``, None if the name is no function."""

    def parts_of(self, node: ast.Call) -> int | None:
        """Return the argument that may name nodes of the topology before it, if the function has one."""

    def call(self, node: ast.Call, values: Sequence[Value]) -> Value:
        """Return the function's value; raise CollcError where the arguments do not fit."""


def integer(value: Value | Poison, span: Span | None, what: str = "an integer") -> int:
    """Return the value; raise C0132 where it is no integer."""
    if type(value) is int:
        return value
    if isinstance(value, Poison):
        raise Poisoned
    if not isinstance(value, Fraction):
        plain = f"write `{value}` without quotes" if isinstance(value, str) else None
        raise error("C0132", f"found {kind_of(value)}, needed {what}", span=span, hint=plain)
    hint = f"`floor(..)` of it is {floor(value)}, `ceil(..)` is {ceil(value)}"
    raise error("C0132", f"found {value}, needed {what}", span=span, hint=hint)


@frozen(eq=False)
class _Stage:
    """A loop of a comprehension, with its variable, or a condition without one."""

    thunk: Thunk
    node: ast.Expr
    name: str = ""
    cell: Cell | None = None


@frozen(eq=False)
class Rounds:
    """The loops and conditions of a comprehension; ``scope`` is that of its item."""

    scope: Scope
    stages: tuple[_Stage, ...]
    span: Span | None

    def collect(self, frame: Frame, items: Callable[[], list[T]]) -> list[T]:
        """Return all ``items``, which are computed once for each value of the variables.

        Raises C0134 for too many values; mistakes in an item name the values that it has.
        """
        found: list[T] = []
        for _ in self._each(frame):
            try:
                found += items()
            except CollcError as failure:
                raise self._explained(failure) from None
            if len(found) > _MAX_ROUNDS:
                raise error("C0134", f"found a set of more than {_MAX_ROUNDS} items", span=self.span)
        return found

    def _each(self, frame: Frame) -> Iterator[None]:
        """Yield once for each value of the variables that fulfils the conditions."""
        left = _MAX_ROUNDS

        def walk(number: int) -> Iterator[None]:
            nonlocal left
            if number == len(self.stages):
                yield
                return
            stage = self.stages[number]
            if stage.cell is None:
                if _truth(stage.thunk(frame), stage.node.span):
                    yield from walk(number + 1)
                return
            values = members(stage.thunk(frame), stage.node.span)
            left -= len(values) if isinstance(values, tuple) else extent(values)
            if left < 0:
                message = f"found a set with more than {_MAX_ROUNDS} values of its variables"
                raise error("C0134", message, span=self.span)
            for value in values:
                stage.cell.value = value
                yield from walk(number + 1)

        return walk(0)

    def _explained(self, failure: CollcError) -> CollcError:
        cells = [(stage.name, stage.cell.value) for stage in self.stages if stage.cell is not None]
        shown = [f"{name} = {value}" for name, value in cells if type(value) is int]
        notes = (f"with {', '.join(shown)}",) if shown else ()
        return CollcError([attrs.evolve(one, notes=(*one.notes, *notes)) for one in failure.diagnostics])


@frozen
class Compiler:
    """Compiles expressions; mistakes found while compiling go to ``problems``, and the thunk then raises Poisoned."""

    functions: Functions
    problems: Problems
    vocabulary: Callable[[], Vocabulary]
    imported: Callable[[ast.Import], Topology]
    calls: Calls

    def evaluate(self, node: ast.Expr, scope: Scope, needs: Needs = ()) -> Value:
        """Return the value of an expression without variables; raises CollcError or Poisoned."""
        value: Value = self.compile(node, scope, needs)([])
        return value

    def compile(self, node: ast.Expr, scope: Scope, needs: Needs = ()) -> Thunk:
        """Return an expression as a function of the frame; hints offer only what ``needs`` name."""
        try:
            return self._compile(node, scope, needs)
        except CollcError as failure:
            self.problems.take(failure, node.span)
        except Poisoned:
            pass
        return _poisoned

    def _compile(self, node: ast.Expr, scope: Scope, needs: Needs) -> Thunk:
        match node:
            case ast.Number(value):
                return _constant(whole(value))
            case ast.Quantity(value, unit):
                return _constant(_quantity(value, unit, needs, node.span))
            case ast.String(text):
                return _constant(text)
            case ast.Name(name):
                return self._name(name, scope, needs, node.span)
            case ast.Index(name, items):
                return self._index(node, name, items, scope)
            case ast.Call(_, arguments):
                return self._call(node, arguments, scope, needs)
            case ast.Unary(sign, operand):
                thunk = self.compile(operand, scope, needs)
                return _not(thunk, operand.span) if sign == "not" else _negative(thunk, node.span)
            case ast.Binary():
                return self._binary(node, scope, needs)
            case ast.Range(low, high, stride):
                by = None if stride is None else self.compile(stride, scope, NUMBER)
                return _range(self.compile(low, scope, NUMBER), self.compile(high, scope, NUMBER), by, node)
            case ast.SetOf(items):
                return _set([self._member(item, scope) for item in items], [item.span for item in items])
            case ast.Comprehension():
                return self._comprehension(node, scope)
            case ast.Import():
                return _constant(self.imported(node))

    def _comprehension(self, node: ast.Comprehension, scope: Scope) -> Thunk:
        rounds = self.rounds(node, scope)
        item, span = self._member(node.item, rounds.scope), node.item.span

        def run(frame: Frame) -> Value:
            values = rounds.collect(frame, lambda: [_sound(item(frame))])
            return _set_of(values, [span] * len(values))

        return run

    def rounds(self, node: ast.Comprehension, scope: Scope) -> Rounds:
        """Return the loops and conditions of a comprehension; raise C0116 if they are too many."""
        stages: list[_Stage] = []
        for clause in node.clauses:
            if clause.condition is not None:
                stages.append(_Stage(self.compile(clause.condition, scope), clause.condition))
            for loop in clause.loops:
                domain, cell = self.compile(loop.domain, scope, NUMBER), Cell()
                scope = Scope(parent=scope, level=2)
                scope.declare(loop.name.text, cell, loop.name.span)
                stages.append(_Stage(domain, loop.domain, loop.name.text, cell))
        if len(stages) > _MAX_CLAUSES:
            message = f"found {len(stages)} loops and conditions in a set, needed at most {_MAX_CLAUSES}"
            raise error("C0116", message, span=node.span, hint="name a part of it with `let`")
        return Rounds(scope, tuple(stages), node.span)

    def _member(self, item: ast.Expr | ast.Arrow, scope: Scope) -> Thunk:
        if not isinstance(item, ast.Arrow):
            _require_no_arrow(item)
            return self.compile(item, scope, NUMBER)
        return _arrow(self.compile(item.tail, scope, NODE), self.compile(item.head, scope, NODE), item)

    def _index(self, node: ast.Index, name: str, items: Sequence[ast.Expr], scope: Scope) -> Thunk:
        table = scope.find_nodes(name)
        if table is None:
            if scope.find(name) is POISON:
                return _poisoned
            if node.quoted:
                raise _no_family(node, scope)
            if isinstance(scope.find(name), Constant | Variable | Cell) and len(items) == 1:
                return _element(self._name(name, scope, (), node.span), self.compile(items[0], scope, NUMBER), node)
            if scope.find(name) is not None:
                raise error("C0131", f"`{name}` is no family of nodes and has no indices", span=node.span)
            raise self.functions.bracketed(node) or scope.undefined_family(name, len(items), node.span)
        thunks = [self.compile(item, scope, NUMBER) for item in items]
        family = table.families[name]

        def missing(indices: tuple[int, ...]) -> Value:
            for index, item in zip(indices, items, strict=True):
                if isinstance(index, range):
                    hint = f"name every node in a loop: `for i in {index.start}..{index.stop} {{ .. {name}[i] .. }}`"
                    if not table.declaring:
                        hint = _each_of(name, family, indices)
                    raise error("C0132", "found a range, needed an index", span=item.span, hint=hint)
                integer(index, item.span)
            try:
                return table.find(name, indices, node.span)
            except CollcError as failure:
                raise _with_index_hint(failure, node, indices, shape_of(family, len(indices))) from None

        return _lookup(thunks, family, missing)

    def _name(self, name: str, scope: Scope, needs: Needs, span: Span | None) -> Thunk:
        match scope.find(name):
            case Constant(value):
                return _constant(value)
            case Variable(index):
                return itemgetter(index)
            case Cell() as cell:
                return lambda frame: cell.value
            case Function(parameters=parameters):
                hint = f"write `{name}({', '.join(parameters)})`"
                raise error("C0131", f"`{name}` is a function, needed a value", span=span, hint=hint)
            case Procedure():
                message, hint = f"`{name}` is a block, needed a value", f"a statement runs it: `call {name}(..);`"
                raise error("C0131", message, span=span, hint=hint)
            case Listing(failure=failure):
                return _failing(failure)
            case None:
                table = scope.find_nodes(name)
                if table is None:
                    raise scope.undefined(name, span, needs, self.vocabulary())
                return _constant(table.find(name, (), span))
            case _:
                return _poisoned

    def _call(self, node: ast.Call, arguments: Sequence[ast.Expr], scope: Scope, needs: Needs) -> Thunk:
        if scope.find_nodes(node.name) is not None:
            hint = f"write `{node.name}[{', '.join(map(expression_text, arguments))}]`"
            message = f"`{node.name}` is a family of nodes: indices stand in `[ ]`"
            raise error("C0131", message, span=node.span, hint=hint)
        match scope.find(node.name):
            case Poison():
                return _poisoned
            case Function() as function:
                return called(node, function, scope, self)
        place = self.functions.parts_of(node)
        named = place if place is not None and place < len(arguments) else None
        kinds = self.functions.needs(node)
        thunks = [
            self.compile(argument, scope, kind)
            for i, (argument, kind) in enumerate(zip(arguments, kinds, strict=True))
            if i != named
        ]
        unknown(node, scope, lambda: self.functions.require(node, needs, self.vocabulary))

        def run(frame: Frame) -> Value:
            return self.functions.call(node, [_sound(thunk(frame)) for thunk in thunks])

        def run_with_names(frame: Frame) -> Value:
            values = [_sound(thunk(frame)) for thunk in thunks]
            whole, before, after = values[0], values[:named], values[named:]
            if not isinstance(whole, Topology):  # which is a mistake, whatever the parts
                parts = self._topology_among_the_parts(arguments[named or 0], scope, frame)
                return self.functions.call(node, [*before, parts, *after])
            inner = scope.child()
            inner.nodes = NodeTable.of(whole)
            parts = _sound(self.compile(arguments[named or 0], inner)(frame))
            return self.functions.call(node, [*before, parts, *after])

        return run if named is None else run_with_names

    def _topology_among_the_parts(self, argument: ast.Expr, scope: Scope, frame: Frame) -> Value:
        """Return the topology that stands in the place of the parts, for a hint; else an empty set."""
        called = isinstance(argument, ast.Call) and argument.name in self.functions.families()
        if not called and not isinstance(argument, ast.Name):
            return Integers(())
        value = self.compile(argument, scope, TOPOLOGY)(frame)
        return value if isinstance(value, Topology) else Integers(())

    def _binary(self, node: ast.Binary, scope: Scope, needs: Needs) -> Thunk:
        if node.operator in ("-", "/") and (unquoted := _unquoted(node, scope, needs)):
            raise unquoted
        if node.operator == "-" and "topology" in needs and (word := _hyphenated(node, scope)):
            hint = self.vocabulary().hint(word, "topology", self.functions.families(), called=True)
            message = f"unknown graph family `{word}`: names have no `-`"
            raise error("C0122", message, span=node.span, hint=hint or f"write `{word.replace('-', '_')}`")
        left, right = self.compile(node.left, scope, needs), self.compile(node.right, scope, needs)
        if node.operator in ("and", "or"):
            return _logical(left, right, node)
        return _FAST.get(node.operator, _comparison)(left, right, node)


def _no_family(node: ast.Index, scope: Scope) -> CollcError:
    """Return the error for ``"NAME"[I]`` if no family here has the name; raise C0130 for one that is declared later."""
    indices = ", ".join(map(expression_text, node.indices))
    if any(around.nodes is not None for around in scope.chain()):
        try:
            scope.node_named(node.name, node.span)
        except CollcError as failure:
            return failure
    hint = f'write the whole name in quotes: `"{node.name}[{indices}]"`'
    return error("C0131", "found indices after a string, needed a topology with its nodes", span=node.span, hint=hint)


def _each_of(name: str, family: Mapping[tuple[int, ...], Value], indices: Sequence[Value]) -> str:
    """Return what names the nodes of a range of indices in a set: the numbers of ranks, or each node."""
    ranges = [index if isinstance(index, range) else [index] for index in indices if isinstance(index, int | range)]
    meant = [at for at in islice(product(*ranges), MAX_SET) if at in family]
    numbers = [number for at in meant if type(number := family[at]) is int]
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(meant))):
        return f"write the numbers of these ranks: `{{{numbers[0]}..{numbers[-1] + 1}}}`"
    shown = [f"{name}[{', '.join(map(str, at))}]" for at in meant[:2]]
    return f"name each node: `{{{', '.join(shown)}{', ..' * (len(meant) > 2)}}}`" if shown else "name each node"


_NEARLY_ARROWS = {"<": ("<-", "->"), "-": ("--", "<->")}


def _require_no_arrow(item: ast.Expr) -> None:
    """Raise C0108 for `0 <- 1` and `0 -- 1`, which would be `0 < -1` and `0 - (-1)`."""
    if not isinstance(item, ast.Binary) or item.operator not in _NEARLY_ARROWS:
        return
    if not isinstance(item.right, ast.Unary) or item.right.operator != "-":
        return
    found, arrow = _NEARLY_ARROWS[item.operator]
    ends = [expression_text(item.left), expression_text(item.right.operand)]
    hint = f"write `{f' {arrow} '.join(ends if arrow == '<->' else reversed(ends))}`"
    raise error("C0108", f"found `{found}` in a set, needed `->` or `<->`", span=item.span, hint=hint)


def _with_index_hint(
    failure: CollcError, node: ast.Index, indices: tuple[int, ...], shape: tuple[int, ...]
) -> CollcError:
    """Return the error for an index just past the last, with the usual remedy: close the ring, or begin at 0."""
    past = [at for at, (index, size) in enumerate(zip(indices, shape, strict=False)) if not 0 <= index < size]
    if len(indices) != len(shape) or not past:
        return failure
    hint = past_hint(node.indices[past[0]], indices[past[0]], shape[past[0]])
    return CollcError([attrs.evolve(one, hint=hint) for one in failure.diagnostics], failure.exit_status)


def past_hint(node: ast.Expr, value: int, count: int) -> str:
    """Return what to write for a number just past the last of ``count``: close the ring, or begin at 0."""
    if value == count and isinstance(node, ast.Binary) and node.operator == "+":
        return f"on a ring write `({expression_text(node)}) mod {count}`; on a chain end the range one earlier"
    if value == count and isinstance(node, ast.Name):
        return f"numbers count from 0, so the last is {count - 1}; `0..{count}` leaves out {count}"
    if value == -1 and isinstance(node, ast.Binary) and node.operator == "-":
        return f"on a ring write `({expression_text(node)}) mod {count}`; on a chain begin the range at 1"
    return f"numbers count from 0, so the last is {count - 1}"


def _unquoted(node: ast.Binary, scope: Scope, needs: Needs) -> CollcError | None:
    """Return the error for a node's name that needs quotes, as in ``link n-001 <-> leaf``; None for an expression."""
    first, span = node.left, node.span
    while isinstance(first, ast.Binary):
        first = first.left
    if not isinstance(first, ast.Name) or scope.find(first.name) is not None or span is None:
        return None
    text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    if span.line != span.end_line or " " in text or scope.find_nodes(first.name) is not None:
        return None
    known = any(around.nodes is not None and around.nodes.has(text) for around in scope.chain())
    if not known and (needs != NODE or first.name in scope.later):
        return None
    message = f"found `{text}`, needed the name of a node"
    return error("C0131", message, span=span, hint=f'write it in quotes, because it is no identifier: `"{text}"`')


def _hyphenated(node: ast.Binary, scope: Scope) -> str | None:
    """Return the name that was meant as one word, as in ``dgx-h100(2)``; None if the left side is declared."""
    if not isinstance(node.left, ast.Name) or scope.find(node.left.name) is not None:
        return None
    right = node.right
    return f"{node.left.name}-{right.name}" if isinstance(right, ast.Name | ast.Call) else None


def _lookup(thunks: list[Thunk], family: Mapping[tuple[int, ...], Value], missing: Callable[..., Value]) -> Thunk:
    """Return the function that finds a node by its indices, with a fast case for one index."""
    if len(thunks) == 1:
        (one,) = thunks

        def single(frame: Frame) -> Value:
            key = (one(frame),)
            return family[key] if key in family else missing(key)

        return single

    def several(frame: Frame) -> Value:
        key = tuple([thunk(frame) for thunk in thunks])
        return family[key] if key in family else missing(key)

    return several


def _element(thunk: Thunk, index: Thunk, node: ast.Index) -> Thunk:
    """Return the function that takes an element of a range or set, in the order in which it was written."""
    at = node.indices[0].span

    def run(frame: Frame) -> Value:
        several, number = _sound(thunk(frame)), integer(index(frame), at, "an index")
        values: Sequence[Value] | None = None
        match several:
            case range():
                values = several
            case Integers(items, given=given):
                values = given or items
            case Parts(items) if not any(isinstance(item, Arrow) for item in items):
                values = [item for item in items if not isinstance(item, Arrow)]
        if values is None:
            message = f"`{node.name}` is {kind_of(several)} and has no indices"
            raise error("C0131", message, span=node.span, hint="ranges, sets and families of nodes have indices")
        size = extent(several) if isinstance(several, range) else len(values)
        if not 0 <= number < size:
            message = f"found element {number} of `{node.name}`: elements are 0 to {size - 1}"
            hint = past_hint(node.indices[0], number, size)
            raise error("C0135", message if size else f"`{node.name}` is empty", span=at, hint=hint)
        return values[number]

    return run


# ---- leaves


def _poisoned(frame: Frame) -> Value:
    raise Poisoned


def _failing(failure: CollcError) -> Thunk:
    def run(frame: Frame) -> Value:
        raise failure

    return run


def _sound(value: Value | Poison) -> Value:
    if isinstance(value, Poison):
        raise Poisoned
    return value


def _constant(value: Value) -> Thunk:
    return lambda frame: value


def _quantity(value: Fraction, unit: str, needs: Needs, span: Span | None) -> Quantity:
    if unit not in UNITS:
        from .unit_hints import other_notation, unknown_unit

        measures = tuple(need for need in needs if need in MEASURES)
        hint = other_notation(value, unit)
        if hint is not None:
            raise error("C0123", f"found `{number_text(value)}{unit}`, needed a number", span=span, hint=hint)
        raise error("C0123", f"unknown unit `{unit}`", span=span, hint=unknown_unit(value, unit, measures))
    measure, scale = UNITS[unit]
    return Quantity(value * scale, measure, expression_text(ast.Quantity(value, unit)))


def _range(low: Thunk, high: Thunk, by: Thunk | None, node: ast.Range) -> Thunk:
    def ends(frame: Frame) -> tuple[int, int]:
        return integer(low(frame), node.low.span), integer(high(frame), node.high.span)

    if by is None or node.stride is None:
        return lambda frame: range(*ends(frame))
    span = node.stride.span

    def strided(frame: Frame) -> range:
        stride = integer(by(frame), span, "a stride")
        if stride < 1:
            hint = "ranges ascend: write the numbers in a set for another order"
            raise error("C0134", f"found the stride {stride}, needed one from 1", span=span, hint=hint)
        return range(*ends(frame), stride)

    return strided


def _set(thunks: Sequence[Thunk], spans: Sequence[Span | None]) -> Thunk:
    """Return the function that makes a set."""
    return lambda frame: _set_of([_sound(thunk(frame)) for thunk in thunks], spans)


def _set_of(values: Sequence[Value], spans: Sequence[Span | None]) -> Integers | Parts:
    """Return a set: of integers, or with switches, links or names of nodes in it."""
    named = any(isinstance(value, Switch | Arrow | str) for value in values)
    return _parts(values, spans) if named else _integers(values, spans)


def members(value: Value | Poison, span: Span | None) -> range | tuple[Value, ...]:
    """Return the values that a loop's variable takes; raise C0131 for a value that is no range or set."""
    match value:
        case range():
            return value
        case Integers(items):
            return items
        case Parts(nodes) if not any(isinstance(node, Arrow) for node in nodes):
            return tuple(node for node in nodes if not isinstance(node, Arrow))
        case Poison():
            raise Poisoned
    hint = f"write `0..{value}`" if type(value) is int else "write `LOW..HIGH` or `{A, B}`"
    raise error("C0131", f"found {kind_of(value)}, needed a range or a set of integers", span=span, hint=hint)


def _integers(values: Sequence[Value], places: Sequence[Span | None]) -> Integers:
    items: list[int] = []
    ranges: list[range] = []
    spans: list[Span | None] = []
    for value, place in zip(values, places, strict=True):
        if isinstance(value, range):
            if extent(value) > MAX_SET - len(items):
                hint = "a loop takes the range itself: `for i in a..b`"
                raise error("C0134", f"found a set of more than {MAX_SET} integers", span=place, hint=hint)
            items.extend(value)
            ranges += [value] if value.step == 1 else []
        else:
            items.append(integer(value, place))
        spans += [place] * (len(items) - len(spans))
    ordered = sorted(items)
    twice = next((a for a, b in pairwise(ordered) if a == b), None)
    if twice is not None:
        first, again = [at for one, at in zip(items, spans, strict=True) if one == twice][:2]
        hint, related = "write each number once", earlier(first, "the first") if first != again else ()
        raise error("C0137", f"found {twice} twice in a set", span=again, hint=hint, related=related)
    return Integers(tuple(ordered), tuple(ranges), tuple(items), tuple(spans))


def _parts(values: Sequence[Value], places: Sequence[Span | None]) -> Parts:
    """Return a set of nodes and links; a link may stand in it several times, once for each of parallel links."""
    items: list[int | Switch | Arrow | str] = []
    spans: list[Span | None] = []
    for value, place in zip(values, places, strict=True):
        new = (
            value
            if isinstance(value, range)
            else (value if isinstance(value, Switch | Arrow | str) else integer(value, place),)
        )
        if len(new) > MAX_SET - len(items):
            raise error("C0134", f"found a set of more than {MAX_SET} nodes and links", span=place)
        items.extend(new)
        spans.extend([place] * len(new))
    return Parts(tuple(items), tuple(spans))


def _arrow(tail: Thunk, head: Thunk, node: ast.Arrow) -> Thunk:
    """Return the function that makes a link of a set from its ends."""

    def run(frame: Frame) -> Arrow:
        ends = (_end(tail(frame), node.tail.span), _end(head(frame), node.head.span))
        return Arrow(*ends, node.duplex)

    return run


def _end(value: Value | Poison, span: Span | None) -> int | Switch | str:
    return value if isinstance(value, Switch | str) else integer(value, span, "a rank or a switch")


# ---- operators: a fast case for integers, everything else by arithmetic()


def _add(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        return a + b if type(a) is int and type(b) is int else arithmetic("+", _sound(a), _sound(b), node.span)

    return run


def _subtract(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        return a - b if type(a) is int and type(b) is int else arithmetic("-", _sound(a), _sound(b), node.span)

    return run


def _modulo(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if type(a) is int and type(b) is int and b > 0:
            return a % b
        return arithmetic("mod", _sound(a), _sound(b), node.span)

    return run


def _multiply(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if type(a) is int and type(b) is int:
            return bounded(a * b, node.span)
        return arithmetic("*", _sound(a), _sound(b), node.span)

    return run


def _divide(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    return lambda frame: arithmetic("/", _sound(left(frame)), _sound(right(frame)), node.span)


def _comparison(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    return lambda frame: compared(node.operator, _sound(left(frame)), _sound(right(frame)), node.span)


_FAST: dict[str, Callable[[Thunk, Thunk, ast.Binary], Thunk]] = {
    "+": _add, "-": _subtract, "mod": _modulo, "*": _multiply, "/": _divide,
}  # fmt: skip


def _negative(operand: Thunk, span: Span | None) -> Thunk:
    def run(frame: Frame) -> Value:
        value = operand(frame)
        return -value if type(value) is int else arithmetic("*", -1, _sound(value), span)

    return run


def _truth(value: Value | Poison, span: Span | None) -> bool:
    value = _sound(value)
    if not isinstance(value, bool):
        raise error(
            "C0131", f"found {kind_of(value)}, needed a truth value", span=span, hint="compare it with something"
        )
    return value


def _not(operand: Thunk, span: Span | None) -> Thunk:
    return lambda frame: not _truth(operand(frame), span)


def _logical(left: Thunk, right: Thunk, node: ast.Binary) -> Thunk:
    if node.operator == "and":
        return lambda frame: _truth(left(frame), node.left.span) and _truth(right(frame), node.right.span)
    return lambda frame: _truth(left(frame), node.left.span) or _truth(right(frame), node.right.span)
