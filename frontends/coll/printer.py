"""Tree -> canonical text. Comments of the original text, if there is one, stay with their statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest

from collc.ir.frozen import frozen

from . import ast

__all__ = ["expression_text", "file_text", "number_text"]

_WIDTH = 100
_INDENT = "  "

Place = tuple[int, int]
_NOWHERE: Place = (0, 0)


# ---- expressions

_LEVELS = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<=": 4, ">=": 4, "<": 4, ">": 4, "+": 6, "-": 6, "*": 7, "/": 7, "mod": 7,
}  # fmt: skip
_NOT, _RANGE, _SUM, _NEGATIVE, _ATOM = 3, 5, 6, 8, 9


def expression_text(node: ast.Expr | ast.Word | ast.Arrow) -> str:
    """Return an expression as canonical text, with no more parentheses than it needs.

    >>> expression_text(ast.Binary("-", ast.Name("a"), ast.Binary("-", ast.Name("b"), ast.Number(Fraction(1, 2)))))
    'a - (b - 0.5)'
    """
    return _expression(node)[0]


def _expression(node: ast.Expr | ast.Word | ast.Arrow) -> tuple[str, int]:
    """Return the text and its level of precedence."""
    match node:
        case ast.Number(value):
            return number_text(value), _ATOM
        case ast.Quantity(value, unit):
            return f"{number_text(value)} {unit}", _ATOM
        case ast.String(value):
            return f'"{value}"', _ATOM
        case ast.Name(name) | ast.Word(name):
            return name, _ATOM
        case ast.Index(name, items, quoted):
            return f"{_maybe_quoted(name, quoted)}[{_list(items)}]", _ATOM
        case ast.Call(name, items):
            return f"{name}({_list(items)})", _ATOM
        case ast.SetOf(items):
            return f"{{{_list(items)}}}", _ATOM
        case ast.Comprehension(item, clauses):
            return f"{{{expression_text(item)} {' '.join(map(_clause, clauses))}}}", _ATOM
        case ast.Arrow(tail, head, duplex):
            return f"{expression_text(tail)} {'<->' if duplex else '->'} {expression_text(head)}", 0
        case ast.Import(path, format):
            return f'import "{path.value}"' + (f" as {format.text}" if format else ""), _ATOM
        case ast.Unary("not", operand):
            return f"not {_at_least(_NOT, operand)}", _NOT
        case ast.Unary(_, operand):
            return f"-{_at_least(_NEGATIVE, operand)}", _NEGATIVE
        case ast.Range(low, high, stride):
            by = "" if stride is None else f" by {_at_least(_SUM, stride)}"
            return f"{_range_end(low)}..{_range_end(high)}{by}", _RANGE
        case ast.Binary(operator, left, right):
            level = _LEVELS[operator]
            first = level + 1 if level == _LEVELS["=="] else level  # a < b < c is not a comparison
            return f"{_at_least(first, left)} {operator} {_at_least(level + 1, right)}", level


def _at_least(level: int, node: ast.Expr) -> str:
    text, own = _expression(node)
    return text if own >= level else f"({text})"


def _range_end(node: ast.Expr) -> str:
    """Return an end of a range, ``n-1`` without spaces."""
    match node:
        case ast.Binary("+" | "-" as operator, ast.Name(name), ast.Number(value)):
            return f"{name}{operator}{number_text(value)}"
    return _at_least(_RANGE + 1, node)


def _clause(node: ast.Clause) -> str:
    return f"for {_heads(node.loops)}" if node.condition is None else f"if {expression_text(node.condition)}"


def _heads(loops: Iterable[ast.Loop]) -> str:
    return ", ".join(f"{loop.name.text} in {expression_text(loop.domain)}" for loop in loops)


def _indexed(name: ast.Word, indices: Sequence[ast.Expr]) -> str:
    return f"{name.text}[{_list(indices)}]" if indices else name.text


def _list(items: Iterable[ast.Expr | ast.Arrow]) -> str:
    return ", ".join(expression_text(item) for item in items)


def number_text(value: Fraction) -> str:
    """Return a number without an exponent; the language writes only decimals.

    >>> number_text(Fraction(5, 4)), number_text(Fraction(30))
    ('1.25', '30')
    """
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
        if places > 100:
            raise ValueError(f"{value} has no finite decimal form")
    whole, rest = divmod(int(value * 10**places), 10**places)
    return f"{whole}.{rest:0{places}}" if places else str(whole)


# ---- statements and declarations, as lines


@frozen
class _Line:
    """One line, and the range of the original text that it covers."""

    indent: int
    text: str
    start: Place
    end: Place
    opens: bool = False
    closes: bool = False


class _Printer:
    """Collects the lines of a file."""

    def __init__(self, comments: list[_Comment]):
        self.comments = comments
        self.lines: list[_Line] = []
        self.indent = 0
        self.text = ""
        self.start = _NOWHERE
        self.closes = False

    # ---- lines

    def _begin(self, node: ast.Node, text: str) -> None:
        self.start, self.text = _first(node), text

    def _end(self, place: Place, opens: bool = False) -> None:
        self.lines.append(_Line(self.indent, self.text, self.start, place, opens, self.closes))
        self.text, self.closes = "", False

    def _open(self, block: ast.Node) -> None:
        self.text += "{"
        self._end(_after(_first(block)), opens=True)
        self.indent += 1

    def _close(self, block: ast.Node) -> None:
        self.indent -= 1
        line, column = _last(block)
        self.start, self.text, self.closes = (line, column - 1), "}", True

    def _simple(self, node: ast.Node, text: str) -> None:
        self._begin(node, text)
        self._end(_last(node))

    # ---- declarations

    def declaration(self, node: ast.Declaration) -> None:
        match node:
            case ast.Define():
                self._define(node)
            case ast.Function() | ast.Procedure():
                self._statement(node)
            case ast.Include(path):
                self._simple(node, f'include "{path.value}";')
            case ast.Imported(path, name, figures):
                self._begin(node, f'import "{path.value}" as {name.text}')
                self._tail(node, figures, " with ")
            case ast.Cluster(name, machine, fabric, options):
                self._begin(node, f"cluster {name.text} = {expression_text(machine)} on {expression_text(fabric)}")
                self._tail(node, options, " ")
            case ast.TopologyIs(name, value, defaults):
                self._begin(node, f"topology {name.text} = {expression_text(value)}")
                self._tail(node, defaults, " with ")
            case ast.TopologyOf():
                self._topology(node)
            case ast.Collective():
                self._collective(node)
            case ast.Kind(name, conditions):
                self._begin(node, f"collective {name.text} ")
                self._options(conditions)
                self._end(_last(node))
            case ast.Together(body):
                self._begin(node, "together ")
                self._block(body)
                self._end(_last(node))
            case ast.Schedule(name, scheduler, options, steps, indices):
                self._begin(node, f"schedule {_indexed(name, indices)} using {scheduler.text}")
                if steps is None:
                    self._tail(node, options, " ")
                else:
                    if options is not None:
                        self.text += " with "
                        self._options(options)
                    self.text += " "
                    self._block(steps)
                    self._end(_last(node))
            case ast.Emit(name, target, options, indices):
                self._begin(node, f"emit {_indexed(name, indices)} as {target.text}")
                self._tail(node, options, " ")

    def _collective(self, node: ast.Collective) -> None:
        text = f"collective {_indexed(node.name, node.indices)} = {node.kind.text} on {expression_text(node.topology)}"
        members = f" among {expression_text(node.members)}" if node.members is not None else ""
        self._begin(node, text + members)
        self._tail(node, node.options, " ")

    def _topology(self, node: ast.TopologyOf) -> None:
        self._begin(node, f"topology {node.name.text} ")
        if node.defaults and node.defaults_first:
            self.text += "with "
            self._options(node.defaults)
            self.text += " "
        self._block(node.body)
        if node.defaults and not node.defaults_first:
            self._tail(node, node.defaults, " with ")
        else:
            self._end(_last(node))

    def _tail(self, node: ast.Node, options: ast.Options | None, before: str) -> None:
        if options is not None:
            self.text += before
            self._options(options)
        self.text += ";"
        self._end(_last(node))

    def _options(self, options: ast.Options) -> None:
        """Print options on one line if they fit and contain no comment, else one per line."""
        texts = [f"{item.name.text}: {expression_text(item.value)}" for item in options.items]
        short = f"{{ {', '.join(texts)} }}" if texts else "{}"
        first, last = _first(options), _last(options)
        commented = any(first < comment.place < last for comment in self.comments)
        if not commented and len(_INDENT) * self.indent + len(self.text) + len(short) < _WIDTH:
            self.text += short
            return
        self._open(options)
        for item, text in zip(options.items, texts, strict=True):
            self._simple(item, f"{text},")
        self._close(options)

    # ---- statements

    def _block(self, block: ast.Block) -> None:
        self._open(block)
        for statement in block.statements:
            self._statement(statement)
        self._close(block)

    def _statement(self, node: ast.Statement) -> None:
        match node:
            case ast.Define():
                self._define(node)
            case ast.Function(name, parameters, value):
                self._simple(node, f"function {_signature(name, parameters)} = {expression_text(value)};")
            case ast.Procedure(name, parameters, body):
                self._begin(node, f"define {_signature(name, parameters)} ")
                self._block(body)
                self._end(_last(node))
            case ast.Invoke():
                self._simple(node, f"{_invoked(node)};")
            case ast.Nodes(kind, families, powers):
                does = f" : {', '.join(power.text for power in powers)}" if powers else ""
                self._simple(node, f"{kind} {', '.join(_family(family) for family in families)}{does};")
            case ast.Link():
                self._simple(node, f"{_link(node)};")
            case ast.For(loops, body):
                self._begin(node, f"for {_heads(loops)} ")
                self._block(body)
                self._end(_last(node))
            case ast.If():
                self._begin(node, "")
                self._if(node)
                self._end(_last(node))
            case ast.At(step, ast.Block() as body):
                self._begin(node, f"at {expression_text(step)} ")
                self._block(body)
                self._end(_last(node))
            case ast.At(step, ast.Transfer() as transfer):
                self._simple(node, f"at {expression_text(step)}: {_transfer(transfer)};")
            case ast.At(step, ast.Invoke() as invoked):
                self._simple(node, f"at {expression_text(step)}: {_invoked(invoked)};")
            case ast.Collective():
                self._collective(node)
            case ast.Transfer():
                self._simple(node, f"{_transfer(node)};")

    def _define(self, node: ast.Define) -> None:
        self._simple(node, f"{node.keyword} {node.name.text} = {expression_text(node.value)};")

    def _if(self, node: ast.If) -> None:
        self.text += f"if {expression_text(node.condition)} "
        self._block(node.then)
        if node.otherwise is not None:
            self.text += " else "
            if isinstance(node.otherwise, ast.If):
                self._if(node.otherwise)
            else:
                self._block(node.otherwise)


def _signature(name: ast.Word, parameters: Sequence[ast.Word]) -> str:
    return f"{name.text}({', '.join(one.text for one in parameters)})"


def _invoked(node: ast.Invoke) -> str:
    return f"call {node.name.text}({_list(node.arguments)})"


def _family(node: ast.NodeFamily) -> str:
    name = _maybe_quoted(node.name.text, node.quoted)
    return f"{name}[{_list(node.shape)}]" if node.shape else name


def _maybe_quoted(name: str, quoted: bool) -> str:
    return f'"{name}"' if quoted else name


def _link(node: ast.Link) -> str:
    sign = "<->" if node.duplex else "->"
    ends = f"link {_at_least(_SUM, node.left)} {sign} {_at_least(_SUM, node.right)}"
    return f"{ends} : {_list(node.attributes)}" if node.attributes else ends


def _transfer(node: ast.Transfer) -> str:
    part = ""
    if node.part is not None and node.parts is not None:
        part = f" part{'s' * node.several_parts} {expression_text(node.part)} of {expression_text(node.parts)}"
    ends = f"from {expression_text(node.source)} to {expression_text(node.target)}"
    text = f"{node.action} shard{'s' * node.several_shards} {expression_text(node.shard)}{part} {ends}"
    if node.scratch is not None:
        text += f" into scratch {expression_text(node.scratch)}"
    if node.options is not None:
        text += f" {{ {_option_list(node.options)} }}" if node.options.items else " {}"
    return text


def _option_list(options: ast.Options) -> str:
    return ", ".join(f"{item.name.text}: {expression_text(item.value)}" for item in options.items)


def _first(node: ast.Node) -> Place:
    return (node.span.line, node.span.column) if node.span else _NOWHERE


def _last(node: ast.Node) -> Place:
    return (node.span.end_line, node.span.end_column) if node.span else _NOWHERE


def _after(place: Place) -> Place:
    return place[0], place[1] + 1


# ---- comments


@frozen
class _Comment:
    place: Place
    text: str


def _comments(text: str) -> list[_Comment]:
    found, line, start = [], 1, 0
    for match in re.finditer(r'"[^"\n]*"|#[^\n]*|\n', text):
        if match.group() == "\n":
            line, start = line + 1, match.end()
        elif match.group()[0] == "#":
            found.append(_Comment((line, match.start() - start + 1), match.group().rstrip()))
    return found


def _with_comments(lines: list[_Line], comments: list[_Comment]) -> list[str]:
    """Return the lines with the comments, and one blank line where the original has any.

    A comment after the end of a line stays there. Every other comment goes before the next line, or before the line of
    the statement that it interrupts.
    """
    done: list[str] = []
    pending = list(reversed(comments))
    last, fresh = 0, True

    def put(text: str, line: int) -> None:
        if not fresh and line - last > 1:
            done.append("")
        done.append(text)

    for line, following in zip_longest(lines, lines[1:]):
        inside = _INDENT * (line.indent + line.closes)
        while pending and pending[-1].place < line.end:
            comment = pending.pop()
            put(inside + comment.text, min(comment.place[0], line.start[0]))
            last, fresh = comment.place[0], False
        fresh = fresh or line.closes
        text = _INDENT * line.indent + line.text
        at_end = bool(pending) and pending[-1].place[0] == line.end[0]
        if at_end and (following is None or pending[-1].place < following.start):
            text += f"  {pending.pop().text}"
        put(text, line.start[0])
        last, fresh = line.end[0], line.opens
    for comment in reversed(pending):
        put(comment.text, comment.place[0])
        last, fresh = comment.place[0], False
    return done


def file_text(file: ast.File, text: str = "") -> str:
    """Return the canonical text of a file; ``text`` is its original text, for comments and blank lines.

    >>> print(file_text(ast.File((ast.Define("param", ast.Word("n"), ast.Number(Fraction(4))),))), end="")
    param n = 4;
    """
    comments = _comments(text)
    printer = _Printer(comments)
    for declaration in file.declarations:
        printer.declaration(declaration)
    return "".join(f"{line}\n" for line in _with_comments(printer.lines, comments))
