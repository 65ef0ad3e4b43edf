"""Text -> tree, with all syntax errors of the text at once.

After an error the parser repairs the text (it inserts a missing ``;``), or skips to the end of the statement and drops
its beginning. It remembers the skipped text, so that a name declared there is not reported as undefined later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Source, Span
from collc.ir.frozen import frozen

from . import ast
from .builder import MAX_NAMES, Builder, Child, Token, TooDeep, TooManyNames
from .collector import paused
from .machine import Machine, Stuck, pattern
from .tables import END

if TYPE_CHECKING:
    from .slips import Fix, Sign

__all__ = ["MAX_DEPTH", "Parsed", "parse_expression", "parse_file"]

#: Deeper trees are refused, so that a recursive walk of a tree cannot exhaust the stack.
MAX_DEPTH = 128
_MAX_PROBLEMS = 100

_FILE_LEVEL = frozenset({"topology", "cluster", "collective", "together", "schedule", "emit", "include"})
_SKIPPED = re.compile(r'#[^\n]*|"[^"\n]*"|[A-Za-z_][A-Za-z0-9_]*|\n|[;{}]')
_DECLARED = re.compile(
    r"\b(?:(?:topology|cluster|collective|param|let|for|rank|switch)\s+|import\s*\"[^\"\n]*\"\s*as\s+)([A-Za-z_]\w*)"
)
_NODES = re.compile(r"\b(?:rank|switch)\b([^;{}]*)")


@frozen
class Parsed:
    """The tree of one text; ``suspects`` are names that skipped text may declare, ``holes`` the places of such text."""

    file: ast.File
    problems: tuple[Diagnostic, ...] = ()
    suspects: frozenset[str] = frozenset()
    holes: tuple[tuple[int, int], ...] = ()

    def damaged(self, span: Span) -> bool:
        """Return whether text inside the span was skipped."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return any(start <= hole < end for hole in self.holes)


def parse_file(source: Source) -> Parsed:
    """Return the tree of a text and all syntax errors in it; raises for no text."""
    session = _Session(source, "file")
    file = session.run()
    file, deep = _without_deep(file)
    problems = (*session.problems, *deep)
    return Parsed(file, problems, frozenset(session.suspects), tuple(session.holes))


def parse_expression(source: Source) -> tuple[ast.Expr, ast.Options | None]:
    """Return one expression and its ``with { ... }``; raises CollcError with all mistakes."""
    session = _Session(source, "expression")
    result = session.run()
    if session.problems:
        raise CollcError(session.problems)
    expression, defaults = result
    for node in (expression, defaults):
        if node is not None and (deep := _too_deep(node)):
            raise CollcError(deep)
    return expression, defaults


class _Session:
    """One parse of one text."""

    def __init__(self, source: Source, start: str):
        self.source = source
        self.text = source.text
        self.start = start
        builder = Builder(source)
        self.machine = Machine(builder, start)
        self.problems = builder.problems
        self.suspects: set[str] = set()
        self.holes: list[tuple[int, int]] = []
        self.repairs: dict[int, int] = {}
        self.reported: set[tuple[int, str]] = set()

    @paused()
    def run(self) -> Child:
        while True:
            try:
                return self.machine.run()
            except Stuck:
                continues = self._recover()
            except TooDeep:
                continues = self._give_up(_nesting_problem)
            except TooManyNames:
                self.machine.builder.names = 0
                continues = self._give_up(_names_problem)
            if not continues:
                return None

    # ---- after an error

    def _recover(self) -> bool:
        """Report the error and prepare the parser to continue; return whether it can."""
        from .slips import Trouble, describe  # most texts need none of it

        machine, position = self.machine, self.machine.next
        fix = describe(
            Trouble(
                self.text, position, _sign(machine.last), self._opener(), machine.expected, self._fits,
                self._open_blocks(),
            )
        )  # fmt: skip
        if (position, fix.code) not in self.reported:
            self._report(fix)
        self.reported.add((position, fix.code))
        if self.start == "expression":
            return False
        if len(self.problems) >= _MAX_PROBLEMS:
            return self._finish()
        self.suspects.update(fix.names)
        return self._repair(fix, position) or self._panic(position if fix.drop_from is None else fix.drop_from)

    def _report(self, fix: Fix) -> None:
        span = self._span(fix.start, fix.end)
        notes, opener = tuple(fix.notes), fix.opener
        related = (Related(f"`{opener.text}` was opened here", self._span(opener.start, opener.end)),) if opener else ()
        self.problems.append(Diagnostic(fix.code, fix.message, span=span, notes=notes, hint=fix.hint, related=related))

    def _repair(self, fix: Fix, position: int) -> bool:
        """Insert a token, replace the found text by one, or skip it; return whether the parser may continue."""
        self.repairs[position] = self.repairs.get(position, 0) + 1
        if not fix.repairs or self.repairs[position] > MAX_DEPTH:
            return False
        if fix.insert is not None:
            machine = self.machine
            if not machine.fits(fix.insert):
                return False
            last = _sign(machine.last)
            start = position if fix.skip else last.end if last else 0
            value = fix.sign or self.text[start : start + fix.skip]
            machine.feed((fix.insert, value, start, *self._line_column(start)))
        self.machine.seek(position + fix.skip)
        return True

    def _panic(self, position: int, nested: int = 0) -> bool:
        """Skip to the end of the statement, out of ``nested`` blocks, and drop its beginning."""
        depth, resume = _boundary(self, position, nested)
        start = self._first_popped(depth, position)
        self._forget(self.text[start:resume])
        self.holes.append(self._line_column(position))
        self.machine.pop(depth)
        self.machine.seek(resume)
        return True

    def _give_up(self, reason: Callable[[Span], Diagnostic]) -> bool:
        """Report why a declaration is too large, and skip it."""
        position = self.machine.next
        self.problems.append(reason(self._span(position, position + 1)))
        if self.start == "expression":
            return False
        return self._panic(position, self._open_blocks())

    def _finish(self) -> bool:
        self.machine.pop(self.machine.depth_for("TOPOLOGY") or 0)
        self.machine.seek(len(self.text))
        return True

    def _forget(self, text: str) -> None:
        self.suspects.update(_DECLARED.findall(text))
        for names in _NODES.findall(text):
            self.suspects.update(quoted or name for quoted, name in re.findall(r'"([^"\n]*)"|([A-Za-z_]\w*)', names))

    def _first_popped(self, depth: int, position: int) -> int:
        for value in self.machine.values[depth:]:
            if type(value) is tuple:
                return int(value[2])
            if isinstance(value, ast.Node) and value.span:
                return self._offset(value.span.line, value.span.column)
        return position

    # ---- the unfinished values

    def _opener(self) -> Sign | None:
        tokens = (value for value in reversed(self.machine.values) if type(value) is tuple)
        return _sign(next((token for token in tokens if token[0] in _OPENERS), None))

    def _open_blocks(self) -> int:
        return sum(type(value) is tuple and value[0] == "LBRACE" for value in self.machine.values)

    def _fits(self, position: int, *inserted: str) -> bool:
        """Return whether the text at ``position`` can follow ``inserted``."""
        expected = self.machine.expected(*inserted)
        if position >= len(self.text):
            return END in expected or bool(expected & {"SEMI", "RBRACE", "RPAR", "RSQB"})
        return any(pattern(name).match(self.text, position) for name in expected - {END})

    # ---- places

    def _line_column(self, position: int) -> tuple[int, int]:
        return self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)

    def _offset(self, line: int, column: int) -> int:
        return self.source.start_of(line) + column - 1

    def _span(self, start: int, end: int) -> Span:
        first, last = self._line_column(start), self._line_column(max(end, start + 1))
        return Span(self.source, *first, *last)


_OPENERS = ("LBRACE", "LPAR", "LSQB")


def _sign(token: Token | None) -> Sign | None:
    from .slips import Sign

    return Sign(*token[:4]) if token else None


def _boundary(session: _Session, position: int, nested: int) -> tuple[int, int]:
    """Return how much of the stack to keep, and where in the text to continue, out of ``nested`` blocks.

    A statement ends after its ``;`` or closing ``}``, before the ``}`` of the block around it, and before a keyword
    that starts a line and may come next.
    """
    from .slips import KEYWORDS

    machine, text, fresh = session.machine, session.text, True
    depth_for = machine.depth_for
    statements = depth_for("TOPOLOGY") or 0 if nested else depth_for("LET", "TOPOLOGY") or 0
    for match in _SKIPPED.finditer(text, position):
        word = match.group()
        if word == "\n":
            fresh = True
            continue
        if word in _FILE_LEVEL and fresh and match.start() > position:
            return depth_for(KEYWORDS[word]) or 0, match.start()
        if word == "{":
            nested += 1
        elif word == "}" and nested:
            nested -= 1
            if not nested and not re.compile(r"\s*(?:else\b|with\b|[;,)])").match(text, match.end()):
                return statements, match.end()
        elif word == "}" and (depth := depth_for("RBRACE")) is not None:
            return depth, match.start()
        elif word == ";" and not nested:
            return statements, match.end()
        elif word in KEYWORDS and not nested and (fresh or match.start() == position):
            depth = depth_for(KEYWORDS[word])
            if depth is not None and (match.start() > position or depth < len(machine.states) - 1):
                return depth, match.start()
        fresh = fresh and word[0] == "#"
    return depth_for("TOPOLOGY") or 0, len(text)


# ---- depth


def _depths(root: ast.Node) -> Iterator[tuple[ast.Node, int]]:
    """Yield the nodes below ``root`` with their depths, without recursion."""
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        for field in attrs.fields(type(node)):
            value = getattr(node, field.name)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, ast.Node):
                    pending.append((child, depth + 1))


def _names_problem(span: Span) -> Diagnostic:
    found = f"found more than {MAX_NAMES} names of ranks and switches in one topology"
    return Diagnostic("C0310", found, span=span, hint="`rank g[100000];` declares many ranks with one name")


def _nesting_problem(span: Span | None) -> Diagnostic:
    message = f"found more than {MAX_DEPTH} levels of nesting"
    hint = "name the parts with `let`, or put the declarations in files of their own"
    return Diagnostic("C0116", message, span=span, hint=hint)


def _too_deep(root: ast.Node) -> Diagnostic | None:
    if root.height <= MAX_DEPTH:
        return None
    return _nesting_problem(next(node.span for node, depth in _depths(root) if depth > MAX_DEPTH))


def _without_deep(file: ast.File) -> tuple[ast.File, list[Diagnostic]]:
    """Return the file without the declarations that are nested too deeply, and the errors of those."""
    deep = [(declaration, _too_deep(declaration)) for declaration in file.declarations]
    kept = tuple(declaration for declaration, problem in deep if problem is None)
    problems = [problem for _, problem in deep if problem is not None]
    return attrs.evolve(file, declarations=kept), problems
