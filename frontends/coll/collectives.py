"""``collective NAME = KIND on TOPOLOGY among MEMBERS { OPTIONS };`` to a :class:`collc.ir.collective.Collective`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from collc.ir.collective import CUSTOM, OPERATIONS, UNEVEN, Collective, preconditions
from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.frozen import frozen
from collc.ir.topology import Topology

from ..units import SIZE
from . import ast
from .expressions import NODE, Compiler, Needs, integer
from .kinds import DTYPES, EVEN, MATRIX, NEIGHBOURS, OPTIONS, ROOTED_KINDS
from .printer import expression_text
from .requests import distinct_options, known
from .scope import Constant, NodeTable, Poisoned, Scope, earlier
from .unit_hints import other_measure
from .values import Quantity, Switch, Value, kind_of

if TYPE_CHECKING:
    from .conditions import Conditions
    from .counts import Counts
    from .weights import Weights

__all__ = ["CollectiveReader", "OwnKind"]

#: sizes are counted in signed 64-bit numbers
_MOST_BYTES = 2**63 - 1


@frozen(eq=False)
class OwnKind:
    """A kind of collective that the file declares."""

    node: ast.Kind

    def condition(self, name: str) -> ast.Option | None:
        """Return one of its conditions, or its weights."""
        return next((item for item in self.node.conditions.items if item.name.text == name), None)


class CollectiveReader:
    """Reads one declaration; ``own`` are the kinds that the file declares.

    ``table`` returns the nodes of the topology by name, ``counts`` what reads files of weights; most declarations need
    neither. Some text of a ``damaged`` declaration was skipped.
    """

    def __init__(
        self, node: ast.Collective, topology: Topology, scope: Scope, compiler: Compiler, own: Mapping[str, OwnKind],
        table: Callable[[], NodeTable], counts: Callable[[], Counts], damaged: bool = False,
    ):  # fmt: skip
        self.node, self.topology, self.scope, self.compiler, self.own = node, topology, scope, compiler, own
        self.table, self.counts, self.damaged = table, counts, damaged
        self.members: tuple[int, ...] | None = None
        self.roots: tuple[int, ...] | None = None  # if there are several, or a list of one
        self.mistakes: list[Diagnostic] = []  # in options

    @property
    def kind(self) -> str:
        """The kind as it was written."""
        return self.node.kind.text

    @property
    def count(self) -> int:
        """Ranks that take part."""
        return self.topology.num_ranks if self.members is None else len(self.members)

    def read(self) -> Collective:
        """Return the collective; raise CollcError with all mistakes, or Poisoned."""
        try:
            return self._read()
        except CollcError as failure:
            raise CollcError([*self.mistakes, *failure.diagnostics]) from None
        except Poisoned:
            if self.mistakes:
                raise CollcError(self.mistakes) from None
            raise

    def _read(self) -> Collective:
        self._read_members()
        given, wrong = self._options()
        self._check_root(given)
        if wrong or self.damaged:
            raise Poisoned
        self._check_needed()
        found = {key: given[key] for key in ("op", "dtype", "root") if key in given}
        size: int | None = given.get("size")
        conditions = self._conditions()
        of_shards = conditions.weights if conditions is not None else None
        weighted: Weights | None = given.get("weights") or given.get("matrix") or of_shards
        if weighted is not None and size is None:
            size = weighted.size
            self._require_size(size)
        kind = CUSTOM if conditions else EVEN.get(self.kind, self.kind)
        pre, contributors = preconditions(conditions.before) if conditions else (None, None)
        if contributors is not None and weighted is not None:
            message, hint = "found weights of shards that are summed", "leave them out: summed shards have one size"
            option = self._option("weights")
            raise error("C0217", message, span=option.name.span if option else self.node.span, hint=hint)
        return Collective(
            kind, self.topology.num_ranks, **found, size=size, weights=weighted.values if weighted else None,
            members=None if kind == CUSTOM else self.members, pre=pre, post=conditions.post if conditions else None,
            contributors=contributors,
        )  # fmt: skip

    def _read_members(self) -> None:
        node = self.node.members
        if node is None:
            return
        if self.kind == CUSTOM:
            message = f"collective `{CUSTOM}` has no members: its conditions name the ranks"
            raise error("C0215", message, span=node.span, hint="leave `among` out")
        from .members import members

        self.members = members(node, self.topology, self._inner(), self.compiler)

    def _inner(self) -> Scope:
        """Return a scope with the names of the topology's nodes."""
        inner = self.scope.child()
        inner.nodes = self.table()
        return inner

    # ---- options

    def _options(self) -> tuple[dict[str, Any], bool]:  # Any: values by option
        given: dict[str, Any] = {}  # Any: the same
        wrong = False
        for item in distinct_options(self.node.options, self.compiler):
            try:
                self._require_option(item)
                given[item.name.text] = self._READERS[item.name.text](self, item.value)
            except Poisoned:
                wrong = True
            except CollcError as failure:
                self.mistakes += [attrs.evolve(one, span=one.span or item.span) for one in failure.diagnostics]
                wrong = True
        return given, wrong

    def _require_option(self, item: ast.Option) -> None:
        """Raise C0127 for an option that no collective has, C0216 or C0217 for one that this kind has not."""
        name = item.name.text
        if name not in OPTIONS:
            raise _no_option(item, self.node, self.compiler)
        if name == "weights" and not self._takes_weights():
            raise self._no_weights(item)
        if name == "matrix" and self.kind != MATRIX:
            hint = "write `weights: {..}`" if self._takes_weights() else f"`{MATRIX}` has one"
            raise error("C0217", f"collective `{self.kind}` has no matrix", span=item.span, hint=hint)
        if name in ("pre", "post") and self.kind != CUSTOM:
            hint = f"write `{CUSTOM}`, or declare a kind: `collective shift {{ pre: .. post: .. }}`"
            raise error("C0216", f"collective `{self.kind}` has its own `{name}`", span=item.span, hint=hint)

    def _takes_weights(self) -> bool:
        return self.kind in (CUSTOM, NEIGHBOURS, *self.own) or (self.kind in EVEN and self.kind != MATRIX)

    def _no_weights(self, item: ast.Option) -> CollcError:
        takers = ", ".join(kind for kind in (*EVEN, CUSTOM) if kind != MATRIX)
        hint = f"write `{UNEVEN[self.kind]}`" if self.kind in UNEVEN else "leave `weights` out"
        if self.kind == MATRIX:
            hint = "write `matrix: {{..}, ..}`: row s is what rank s sends to each rank"
        message, notes = f"collective `{self.kind}` has no weights", (f"those with weights: {takers}",)
        return error("C0217", message, span=item.span, hint=hint, notes=notes)

    def _check_root(self, given: Mapping[str, object]) -> None:
        option = self._option("root")
        if self.kind in ROOTED_KINDS and option is None:
            root = self.members[0] if self.members else 0
            message, hint = f"collective `{self.kind}` needs a root", f"write `{{ root: {root} }}`"
            raise error("C0203", message, span=self.node.kind.span, hint=hint)
        if self.kind not in ROOTED_KINDS and "root" in given and option is not None:
            message, hint = f"collective `{self.kind}` has no root", f"{', '.join(ROOTED_KINDS)} have one"
            raise error("C0203", message, span=option.span, hint=hint)

    def _check_needed(self) -> None:
        """Raise C0217 if an uneven collective has no weights, C0216 if a custom one lacks a condition."""
        span = self.node.kind.span
        if self.kind == MATRIX and self._option("matrix") is None and self._option("weights") is None:
            hint = "write `{ matrix: {{0, 5}, {3, 0}} }`: row s is what rank s sends to each rank"
            raise error("C0217", f"collective `{self.kind}` needs a matrix", span=span, hint=hint)
        if self.kind in EVEN and self.kind != MATRIX and self._option("weights") is None:
            hint = f"write `{{ weights: {{5, 0, 1}} }}`, one for each rank, or `{EVEN[self.kind]}`"
            raise error("C0217", f"collective `{self.kind}` needs weights", span=span, hint=hint)
        missing = [name for name in ("pre", "post") if self.kind == CUSTOM and self._option(name) is None]
        if missing:
            hint = "write `{ pre: {0, 1}, post: {1, 0} }`: who has each shard before, and who needs it after"
            raise error("C0216", f"collective `{CUSTOM}` needs `{missing[0]}`", span=span, hint=hint)

    def _option(self, name: str) -> ast.Option | None:
        items = self.node.options.items if self.node.options else ()
        return next((item for item in items if item.name.text == name), None)

    # ---- conditions and weights

    def _conditions(self) -> Conditions | None:
        """Return the pre- and postcondition of a custom collective; None for another."""
        own = self.own.get(self.kind)
        if own is None and self.kind not in (CUSTOM, NEIGHBOURS):
            return None
        from .conditions import conditions, neighbours

        if own is not None:
            return self._own_conditions(own)
        if self.kind == NEIGHBOURS:
            found = neighbours(self.topology, self.members, self.node.topology.span)
        else:
            pre, post = self._option("pre"), self._option("post")
            assert pre is not None and post is not None
            found = conditions(pre, post, self.topology.num_ranks, self._with_ranks(self._inner()), self.compiler)
        option = self._option("weights")
        return found if option is None else self._weighted(found, option, self.scope)

    def _own_conditions(self, own: OwnKind) -> Conditions:
        from .conditions import conditions

        pre, post = own.condition("pre"), own.condition("post")
        if pre is None or post is None:
            raise Poisoned  # which its declaration has reported
        scope = self._with_ranks(self.scope.child())
        try:
            found = conditions(pre, post, self.count, scope, self.compiler)
            option = self._option("weights") or own.condition("weights")
            found = found if option is None else self._weighted(found, option, scope)
        except CollcError as failure:
            place = earlier(self.node.kind.span, "the collective")
            raise CollcError(
                [attrs.evolve(one, related=(*one.related, *place)) for one in failure.diagnostics]
            ) from None
        return found.among(self.members)

    def _with_ranks(self, scope: Scope) -> Scope:
        """Return a scope in which `ranks` is the number of ranks that take part."""
        inner = scope.child()
        inner.names["ranks"] = Constant(self.count)
        return inner

    def _weighted(self, found: Conditions, option: ast.Option, scope: Scope) -> Conditions:
        assert not isinstance(option.value, ast.Word)
        from .weights import weights

        given = weights(option.value, len(found.before), "each shard", scope, self.compiler, self.counts())
        return attrs.evolve(found, weights=given)

    def _each(self) -> str:
        return "each member" if self.members is not None else f"each rank of `{self.topology.name}`"

    def _weights(self, value: ast.Expr | ast.Word) -> Weights | None:
        if self.kind not in EVEN:
            return None  # they are read when the number of shards is known
        if isinstance(value, ast.Word):
            raise _word_found(value, "weights")
        from .weights import weights

        return weights(value, self.count, self._each(), self.scope, self.compiler, self.counts())

    def _matrix(self, value: ast.Expr | ast.Word) -> Weights:
        if isinstance(value, ast.Word):
            raise _word_found(value, "a matrix")
        from .weights import matrix

        return matrix(value, self.count, self._each(), self.scope, self.compiler, self.counts())

    def _condition(self, value: ast.Expr | ast.Word) -> None:
        if isinstance(value, ast.Word):
            raise _word_found(value, "a list of ranks")

    def _require_size(self, size: int | None) -> None:
        if size is not None and size > _MOST_BYTES:
            message = f"found {float(size):g} B, needed at most {_MOST_BYTES} B (8 EiB)"
            raise error("C0129", message, span=self.node.span, hint="write the bytes of one call")

    # ---- size, root, op, dtype

    def _evaluated(self, value: ast.Expr | ast.Word, scope: Scope, needs: Needs) -> Value:
        if isinstance(value, ast.Word):
            raise _word_found(value, "a number")
        return self.compiler.evaluate(value, scope, needs)

    def _size(self, value: ast.Expr | ast.Word) -> int:
        if isinstance(value, ast.Range):
            hint = (
                "write one size; `schedule NAME using auto { sizes: 1 KiB..1 GiB };` chooses for all sizes of a range"
            )
            raise error("C0129", "found a range, needed a size such as `64 MiB`", span=value.span, hint=hint)
        amount = self._evaluated(value, self.scope, (SIZE,))
        if not isinstance(amount, Quantity) or amount.measure != SIZE:
            message = f"found {kind_of(amount)}, needed a size such as `64 MiB`"
            raise error("C0129", message, span=value.span, hint=_size_hint(amount))
        if amount.value <= 0:
            found = "0 B" if amount.value == 0 else "a negative size"
            hint = "leave `size` out if it is not known"
            raise error("C0129", f"found {found}, needed at least 1 B", span=value.span, hint=hint)
        if amount.value.denominator != 1:
            found, hint = f"{float(amount.value):g} B", f"write `{ceil(amount.value)} B`"
            raise error("C0129", f"found {found}, needed a whole number of bytes", span=value.span, hint=hint)
        if amount.value > _MOST_BYTES:
            message = f"found {float(amount.value):g} B, needed at most {_MOST_BYTES} B (8 EiB)"
            raise error("C0129", message, span=value.span, hint="write the bytes of one call")
        return amount.value.numerator

    def _root(self, value: ast.Expr | ast.Word) -> int:
        topology, inner = self.topology, self._inner()
        from .roots import is_several

        if not isinstance(value, ast.Word) and is_several(value, inner):
            return self._several_roots(value, inner)
        root = self._evaluated(value, inner, NODE)
        if isinstance(root, str) and topology.node_names:
            root = inner.node_named(root, value.span)
        if isinstance(root, Switch):
            name = topology.names[topology.num_ranks + root.number]
            message = f"found `{name}`, a switch of `{topology.name}`, needed a rank as root"
            hint = f"only ranks have data; write a rank, such as `{topology.node_text(0)}`"
            raise error("C0129", message, span=value.span, hint=hint)
        rank = integer(root, value.span, "a rank")
        if not 0 <= rank < topology.num_ranks:
            message = f"found rank {rank}: ranks of `{topology.name}` are 0 to {topology.num_ranks - 1}"
            hint = f"ranks count from 0: the last is {topology.num_ranks - 1}"
            raise error("C0204", message, span=value.span, hint=hint)
        if self.members is not None and rank not in self.members:
            hint = f"the root is named as a rank of `{topology.name}`, and is a member, such as {self.members[0]}"
            raise error("C0215", f"found root {rank}, which is not a member", span=value.span, hint=hint)
        return rank

    def _several_roots(self, value: ast.Expr, scope: Scope) -> int:
        """Keep the roots of a list, or all ranks, and return the first; raise C0203 if the kind has one root."""
        from .roots import roots

        one = None
        if self.node.members is not None:
            one = "beside `among`", "declare one collective for each root"
        elif self.kind in EVEN and self.kind in ROOTED_KINDS:
            one = f"in `{self.kind}`", f"shards of one size may have several: write `{EVEN[self.kind]}`"
        if one is not None:
            message = f"found several roots, needed one rank {one[0]}"
            raise error("C0203", message, span=value.span, hint=one[1])
        self.roots = roots(value, self.topology, scope, self.compiler)
        return self.roots[0]

    def _op(self, value: ast.Expr | ast.Word) -> str:
        return self._word(value, OPERATIONS, "operation")

    def _dtype(self, value: ast.Expr | ast.Word) -> str:
        return self._word(value, DTYPES, "element type")

    def _word(self, value: ast.Expr | ast.Word, names: Sequence[str], what: str) -> str:
        match value:
            case ast.Name(text) | ast.Word(text) | ast.String(text):
                known(ast.Word(text, span=value.span), names, "C0129", what, self.compiler)
                return text
        found = f"found `{expression_text(value)}`, needed an {what}"
        raise error("C0129", found, span=value.span, notes=(f"there are {', '.join(names)}",))

    _READERS: ClassVar[dict[str, Callable[[CollectiveReader, ast.Expr | ast.Word], object]]] = {
        "size": _size, "op": _op, "dtype": _dtype, "root": _root, "weights": _weights, "matrix": _matrix,
        "pre": _condition, "post": _condition,
    }  # fmt: skip


def _word_found(value: ast.Word, need: str) -> CollcError:
    return error("C0129", f"found the word `{value.text}`, needed {need}", span=value.span)


def _no_option(item: ast.Option, node: ast.Collective, compiler: Compiler) -> CollcError:
    """Return the error C0127 for an option that no collective has; the hint says what has it."""
    name = item.name.text
    value = expression_text(item.value)
    if name in ("bandwidth", "latency"):
        hint = f"links have it: `topology pod = torus(4, 4) with {{ {name}: {value} }};`"
    elif name in ("using", "scheduler", "schedule", "algorithm"):
        hint = f"a schedule is a declaration: `schedule {node.name.text} using {value};`"
    elif name in ("target", "emit", "as", "format"):
        hint = f"an output is a declaration: `emit {node.name.text} as {value};`"
    elif name in ("among", "members", "ranks", "group", "participants"):
        hint = f"members stand after the topology: `on {expression_text(node.topology)} among {value}`"
    elif owner := compiler.vocabulary().options(name):
        hint = f"`{name}` is an option of {owner}"
    else:
        known(item.name, OPTIONS, "C0127", "option", compiler)
    return error(
        "C0127", f"a collective has no option `{name}`", span=item.name.span, hint=hint,
        notes=(f"its options are {', '.join(OPTIONS)}",),
    )  # fmt: skip


def _size_hint(found: Value) -> str | None:
    if isinstance(found, Quantity):
        return other_measure(found, (SIZE,))
    if type(found) is int:
        return f"write `{found} B`, or `{found} MiB`"
    return f"write `{found}` without quotes" if isinstance(found, str) else None
