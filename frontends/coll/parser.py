"""Text -> tree, with all syntax errors of the text at once.

After an error the parser either repairs the text (a missing ``;`` is put in) or skips to the end of the statement,
drops what it had of the statement, and goes on. What was skipped is remembered, so that a name declared there is not
reported as undefined later.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Any

import attrs
from lark import Lark, Token, UnexpectedInput, UnexpectedToken
from lark.parsers.lalr_analysis import Shift

from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span

from . import ast
from .builder import CURRENT, Builder, Text
from .slips import KEYWORDS, Fix, Trouble, describe

__all__ = ["MAX_DEPTH", "Parsed", "parse_expression", "parse_file"]

#: Deeper trees are refused, so that nothing that walks a tree can run out of stack.
MAX_DEPTH = 128
_MAX_PROBLEMS = 100

_FILE_LEVEL = frozenset({"topology", "collective", "schedule", "emit", "include"})
_SKIPPED = re.compile(r'#[^\n]*|"[^"\n]*"|[A-Za-z_][A-Za-z0-9_]*|\n|[;{}]')
_DECLARED = re.compile(r"\b(?:topology|collective|param|let|for|rank|switch)\s+([A-Za-z_]\w*)")
_NODES = re.compile(r"\b(?:rank|switch)\b([^;{}]*)")


@attrs.frozen
class Parsed:
    """What one text says; ``suspects`` are names that skipped text may declare, ``holes`` the places of such text."""

    file: ast.File
    problems: tuple[Diagnostic, ...] = ()
    suspects: frozenset[str] = frozenset()
    holes: tuple[tuple[int, int], ...] = ()

    def damaged(self, span: Span) -> bool:
        """Return whether text inside the span was skipped."""
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return any(start <= hole < end for hole in self.holes)


@functools.cache
def _lark() -> Lark:
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", start=["file", "expression"], keep_all_tokens=True, maybe_placeholders=True,
        transformer=Builder(),
    )  # fmt: skip


def parse_file(source: Source) -> Parsed:
    """Return the tree of a text and all syntax errors in it; never raises for what the text says."""
    session = _Session(source, "file")
    file = session.run()
    file, deep = _shallow(file)
    problems = (*session.text.problems, *deep)
    return Parsed(file, problems, frozenset(session.suspects), tuple(session.holes))


def parse_expression(source: Source) -> tuple[ast.Expr, ast.Options | None]:
    """Return one expression and its ``with { ... }``; raises CollcError with all mistakes."""
    session = _Session(source, "expression")
    result = session.run()
    if session.text.problems:
        raise CollcError(session.text.problems)
    expression, defaults = result
    for node in (expression, defaults):
        if node is not None and (deep := _too_deep(node)):
            raise CollcError(deep)
    return expression, defaults


class _Session:
    """One parse of one text."""

    def __init__(self, source: Source, start: str):
        self.text = Text(source)
        self.start = start
        self.parser = _lark().parse_interactive(source.text, start=start)
        self.state = self.parser.parser_state
        self.table = self.state.parse_conf.states
        self.last: Token | None = None
        self.suspects: set[str] = set()
        self.holes: list[tuple[int, int]] = []
        self.repairs: dict[int, int] = {}
        self.reported: set[tuple[int, str]] = set()

    def run(self) -> Any:
        token = CURRENT.set(self.text)
        try:
            while True:
                try:
                    return self._parse()
                except UnexpectedInput as failure:
                    if not self._recover(failure):
                        return None
        finally:
            CURRENT.reset(token)

    def _parse(self) -> Any:
        for token in self.parser.lexer_thread.lex(self.state):
            self.parser.feed_token(token)
            self.last = token
        return self.parser.feed_eof(self.last)

    # ---- after an error

    def _recover(self, failure: UnexpectedInput) -> bool:
        """Report the error and make the parser ready to go on; return whether it can."""
        text = self.text.source.text
        position = self._position(failure)
        fix = describe(Trouble(text, position, self.last, tuple(self.state.value_stack), self._expected, self._fits))
        if (position, fix.code) not in self.reported:
            self._report(fix)
        self.reported.add((position, fix.code))
        if self.start == "expression":
            return False
        if len(self.text.problems) >= _MAX_PROBLEMS:
            return self._finish()
        self.suspects.update(fix.names)
        return self._repair(fix, position) or self._panic(position if fix.drop_from is None else fix.drop_from)

    def _position(self, failure: UnexpectedInput) -> int:
        if isinstance(failure, UnexpectedToken) and failure.token.type == "$END":
            return len(self.text.source.text)
        at = failure.token.start_pos if isinstance(failure, UnexpectedToken) else failure.pos_in_stream
        return int(at or 0)

    def _report(self, fix: Fix) -> None:
        span = self._span(fix.start, fix.end)
        notes = tuple(fix.notes)
        self.text.problems.append(Diagnostic(fix.code, fix.message, span=span, notes=notes, hint=fix.hint))

    def _repair(self, fix: Fix, position: int) -> bool:
        """Put a token in, or in the place of what was found, or skip that; return whether it may lead somewhere."""
        self.repairs[position] = self.repairs.get(position, 0) + 1
        if not fix.repairs or self.repairs[position] > MAX_DEPTH:
            return False
        if fix.insert is not None:
            if self._after(self.state.state_stack, fix.insert) is None:
                return False
            last_end = int(self.last.end_pos or 0) if self.last is not None else 0
            start = position if fix.skip else last_end
            end = start + fix.skip
            value = fix.sign or self.text.source.text[start:end]
            place = (*self._line_column(start), *self._line_column(end))
            token = Token(fix.insert, value, start, *place, end)
            self.parser.feed_token(token)
            self.last = token
        self._seek(position + fix.skip)
        return True

    def _panic(self, position: int) -> bool:
        """Skip to the end of the statement and drop what there is of it."""
        depth, resume = _boundary(self, position)
        start = self._first_popped(depth, position)
        self._forget(self.text.source.text[start:resume])
        self.holes.append(self._line_column(position))
        self._pop(depth)
        self._seek(resume)
        return True

    def _finish(self) -> bool:
        self._pop(self.depth_for("TOPOLOGY") or 0)
        self._seek(len(self.text.source.text))
        return True

    def _forget(self, text: str) -> None:
        self.suspects.update(_DECLARED.findall(text))
        for names in _NODES.findall(text):
            self.suspects.update(re.findall(r"[A-Za-z_]\w*", names))

    def _first_popped(self, depth: int, position: int) -> int:
        popped = self.state.value_stack[depth:]
        for value in popped:
            if isinstance(value, Token):
                return int(value.start_pos or 0)
            if isinstance(value, ast.Node) and value.span:
                return self._offset(value.span.line, value.span.column)
        return position

    def _pop(self, depth: int) -> None:
        del self.state.state_stack[depth + 1 :]
        del self.state.value_stack[depth:]

    # ---- what the parse table says

    def _after(self, stack: list[int], terminal: str) -> list[int] | None:
        """Return the states on top of ``stack`` after the parser took ``terminal``, or nothing where it cannot.

        The first number returned is how many states of the stack stay below them.
        """
        base, top = len(stack), list[int]()
        while (action := self.table[top[-1] if top else stack[base - 1]].get(terminal)) is not None:
            kind, argument = action
            if kind is Shift:
                return [base, *top, argument]
            size = len(argument.expansion)
            base -= max(size - len(top), 0)
            del top[max(len(top) - size, 0) :]
            top.append(self.table[top[-1] if top else stack[base - 1]][argument.origin.name][1])
            if terminal == "$END" and top[-1] == self.state.parse_conf.end_state:
                return [base, *top]
        return None

    def _expected(self, *inserted: str) -> frozenset[str]:
        """Return the terminals that may stand here, after ``inserted``."""
        stack: list[int] = self.state.state_stack
        for terminal in inserted:
            after = self._after(stack, terminal)
            if after is None:
                return frozenset()
            stack = [*stack[: after[0]], *after[1:]]
        terminals = (name for name in self.table[stack[-1]] if name.isupper() or name == "$END")
        return frozenset(name for name in terminals if self._after(stack, name) is not None)

    def _fits(self, position: int, *inserted: str) -> bool:
        """Return whether what stands at ``position`` could follow ``inserted``."""
        expected = self._expected(*inserted)
        if position >= len(self.text.source.text):
            return "$END" in expected or bool(expected & {"SEMI", "RBRACE", "RPAR", "RSQB"})
        return any(_pattern(name).match(self.text.source.text, position) for name in expected - {"$END"})

    def depth_for(self, *terminals: str) -> int | None:
        """Return how much of the stack to keep so that one of ``terminals`` fits; nothing where none can."""
        stack = self.state.state_stack
        if any(self._after(stack, name) is not None for name in terminals):
            return len(stack) - 1
        for depth in range(len(stack) - 2, -1, -1):
            row = self.table[stack[depth]]
            if any(name in row and row[name][0] is Shift for name in terminals):
                return depth
        return None

    # ---- places

    def _seek(self, position: int) -> None:
        lexer = self.parser.lexer_thread.state
        assert lexer is not None
        counter = lexer.line_ctr
        text = self.text.source.text
        counter.char_pos = position
        counter.line = text.count("\n", 0, position) + 1
        counter.line_start_pos = text.rfind("\n", 0, position) + 1
        counter.column = position - counter.line_start_pos + 1

    def _line_column(self, position: int) -> tuple[int, int]:
        text = self.text.source.text
        return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)

    def _offset(self, line: int, column: int) -> int:
        position = 0
        for _ in range(line - 1):
            position = self.text.source.text.index("\n", position) + 1
        return position + column - 1

    def _span(self, start: int, end: int) -> Span:
        first, last = self._line_column(start), self._line_column(max(end, start + 1))
        return Span(self.text.source, *first, *last)


@functools.cache
def _pattern(terminal: str) -> re.Pattern[str]:
    pattern = next(t.pattern for t in _lark().terminals if t.name == terminal)
    return re.compile(pattern.to_regexp())


def _boundary(session: _Session, position: int) -> tuple[int, int]:
    """Return how much of the stack to keep, and where in the text to go on.

    A statement ends after its ``;`` or closing ``}``, before the ``}`` of the block around it, and before a keyword
    that starts a line and may come next.
    """
    text, nested, fresh = session.text.source.text, 0, True
    statements = session.depth_for("LET", "TOPOLOGY") or 0
    for match in _SKIPPED.finditer(text, position):
        word = match.group()
        if word == "\n":
            fresh = True
            continue
        if word in _FILE_LEVEL and fresh and match.start() > position:
            return session.depth_for("TOPOLOGY") or 0, match.start()
        if word == "{":
            nested += 1
        elif word == "}" and nested:
            nested -= 1
            if not nested and not re.compile(r"\s*(?:else\b|[;,)])").match(text, match.end()):
                return statements, match.end()
        elif word == "}" and (depth := session.depth_for("RBRACE")) is not None:
            return depth, match.start()
        elif word == ";" and not nested:
            return statements, match.end()
        elif word in KEYWORDS and not nested and (fresh or match.start() == position):
            depth = session.depth_for(KEYWORDS[word])
            if depth is not None and (match.start() > position or depth < len(session.state.state_stack) - 1):
                return depth, match.start()
        fresh = fresh and word[0] == "#"
    return session.depth_for("TOPOLOGY") or 0, len(text)


# ---- depth


def _depths(root: ast.Node) -> Any:
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


def _too_deep(root: ast.Node) -> Diagnostic | None:
    for node, depth in _depths(root):
        if depth > MAX_DEPTH:
            message = f"found more than {MAX_DEPTH} levels of nesting"
            hint = "name the parts with `let`, or put the declarations in files of their own"
            return Diagnostic("C0116", message, span=node.span, hint=hint)
    return None


def _shallow(file: ast.File) -> tuple[ast.File, list[Diagnostic]]:
    """Return the file without the declarations that are nested too deeply, and what is wrong with those."""
    deep = [(declaration, _too_deep(declaration)) for declaration in file.declarations]
    kept = tuple(declaration for declaration, problem in deep if problem is None)
    problems = [problem for _, problem in deep if problem is not None]
    return attrs.evolve(file, declarations=kept), problems
