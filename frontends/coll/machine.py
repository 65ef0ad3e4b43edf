"""The parser's loop: text -> nodes by the grammar's tables, without recursion and without a parse tree.

An LALR parser mostly renames an expression: ``atom`` to ``factor`` to ``product`` and so on to ``expr``. Such a chain
depends only on two states and the next terminal; each is followed once and remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import attrs

from collc.ir.frozen import frozen

from .builder import Builder, Child, Token, TooDeep
from .tables import END, Rule, Tables, tables

__all__ = ["MAX_STACK", "Machine", "Stuck", "pattern"]

#: More unfinished symbols than this are refused; 128 levels of nesting have fewer.
MAX_STACK = 2000

#: number of values of a rule, its symbol, and its function; without a function the single value stays
Function: TypeAlias = Callable[[Builder, list[Child]], Child]
Reduction: TypeAlias = tuple[int, str, Function | None]
Action: TypeAlias = int | Reduction  # the next state, or what a rule does
Scanner: TypeAlias = Callable[[str, int], re.Match[str] | None]

_LAST = "END_"  # the group of a scanner that matches at the end of the text
_FEW = 8  # tokens found in a state without its scanner, which takes as long to compile


class Stuck(Exception):
    """The grammar does not allow the next token."""


class _Repeated(list[Child]):
    """The values of a repeated part, until the rule around it takes them."""


@frozen(eq=False)
class _Program:
    """The tables in the form that the loop uses; scanners and chains of renaming are added on first use."""

    tables: Tables
    actions: tuple[dict[str, Action], ...]
    scanners: dict[int, Scanner] = attrs.field(factory=dict)
    seen: dict[int, int] = attrs.field(factory=dict)
    renamed: dict[tuple[int, int, str], int] = attrs.field(factory=dict)

    def scanner(self, state: int) -> Scanner:
        """Return the function that finds the next token in a state; the first few times one that compiles little."""
        self.seen[state] = seen = self.seen.get(state, 0) + 1
        return partial(self._find, state) if seen <= _FEW else self._compiled(state)

    def _find(self, state: int, text: str, position: int) -> re.Match[str] | None:
        """Return what the compiled scanner would: the first of the allowed terminals that is there."""
        blanks = _blanks().match(text, position)
        start = blanks.end() if blanks else position
        allowed = self.tables.actions[state]
        for name in _beginning(text[start : start + 1]):
            if name in allowed and (match := _named(name).match(text, start)):
                return match
        return _last().match(text, start)

    def _compiled(self, state: int) -> Scanner:
        """Return the function that finds the next token in a state: after blanks, one that the grammar allows."""
        found = self.tables
        allowed = "|".join(f"(?P<{n}>{text})" for n, text in found.terminals.items() if n in found.actions[state])
        last = rf"|(?P<{_LAST}>\Z)" if allowed else rf"(?P<{_LAST}>\Z)"
        self.scanners[state] = scanner = re.compile(f"{_blanks().pattern}(?:{allowed}{last})").match
        return scanner

    def rename(self, below: int, state: int, terminal: str) -> int:
        """Return the state that renaming the topmost value leads to, before ``terminal``."""
        here = state
        while type(action := self.actions[here].get(terminal)) is tuple and action[2] is None:
            here = self.tables.gotos[below][action[1]]
        self.renamed[below, state, terminal] = here
        return here


@cache
def _blanks() -> re.Pattern[str]:
    found = tables()
    return re.compile(f"(?:{'|'.join(text for name, text in found.terminals.items() if name in found.ignored)})*+")


@cache
def _beginning(letter: str) -> tuple[str, ...]:
    """Return the terminals whose text may begin with a letter: it is theirs, or they begin with a group or a class."""
    return tuple(n for n, text in tables().terminals.items() if text[0] in "([" or text.removeprefix("\\")[0] == letter)


@cache
def _named(terminal: str) -> re.Pattern[str]:
    return re.compile(f"(?P<{terminal}>{tables().terminals[terminal]})")


@cache
def _last() -> re.Pattern[str]:
    return re.compile(rf"(?P<{_LAST}>\Z)")


@cache
def _program() -> _Program:
    found = tables()
    reductions = [_reduction(rule) for rule in found.rules]
    rows = ({name: to if to >= 0 else reductions[-1 - to] for name, to in row.items()} for row in found.actions)
    return _Program(found, tuple(rows))


def _reduction(rule: Rule) -> Reduction:
    if rule.action is None:
        return rule.size, rule.symbol, _collected if rule.symbol.startswith("__") else None
    method: Function = getattr(Builder, rule.action)
    if rule.repeated is None and rule.children == tuple(range(rule.size)):
        return rule.size, rule.symbol, method
    return rule.size, rule.symbol, _arranged(method, rule)


def _collected(builder: Builder, values: list[Child]) -> _Repeated:
    first = values[0]
    if type(first) is not _Repeated:
        return _Repeated(values)
    first.extend(values[1:])
    return first


def _arranged(method: Function, rule: Rule) -> Function:
    def run(builder: Builder, values: list[Child]) -> Child:
        children: list[Child] = []
        for place in rule.children:
            if place < 0:
                children.append(None)
            elif place == rule.repeated:
                children.extend(values[place])
            else:
                children.append(values[place])
        return method(builder, children)

    return run


@cache
def pattern(terminal: str) -> re.Pattern[str]:
    """Return the regular expression of a terminal."""
    return re.compile(tables().terminals[terminal])


class Machine:
    """One parse of one text: the position, the states, and the values that are not yet reduced."""

    def __init__(self, builder: Builder, start: str):
        self.builder = builder
        self.text = builder.source.text
        self.program = _program()
        self.tables = self.program.tables
        first, self.complete = self.tables.starts[start]
        self.states: list[int] = [first]
        self.values: list[Child] = []
        self.last: Token | None = None
        self.seek(0)

    # ---- places

    def seek(self, position: int) -> None:
        """Go on reading at a place of the text."""
        self.position = position
        self.line = self.text.count("\n", 0, position) + 1
        self.line_start = self.text.rfind("\n", 0, position) + 1

    @property
    def next(self) -> int:
        """Where the next token begins."""
        match = _blanks().match(self.text, self.position)
        return match.end() if match else self.position

    # ---- the loop

    def run(self) -> Child:
        """Read on to the end and return the value of the whole.

        Raises Stuck at an invalid token, and TooDeep if too many symbols are unfinished; the machine is then before
        that token.
        """
        text, states, values, program = self.text, self.states, self.values, self.program
        scanners, shifts, reduce, position = program.scanners, program.actions, self._reduce, self.position
        while True:
            state = states[-1]
            match = (scanners.get(state) or program.scanner(state))(text, position)
            if match is None:
                raise Stuck
            terminal: str = match.lastgroup  # type: ignore[assignment]  # every alternative is a named group
            if terminal == _LAST:
                return self._finished()
            start, end = match.span(terminal)
            if start > position and (lines := text.count("\n", position, start)):
                self.line += lines
                self.line_start = text.rfind("\n", position, start) + 1
            self.position = start
            to: Any = shifts[state][terminal]  # Any: an Action; telling which by its class takes longer
            if type(to) is tuple and (to := reduce(terminal)) is None:
                raise Stuck
            if len(states) > MAX_STACK:
                raise TooDeep
            states.append(to)
            self.last = token = (terminal, match[terminal], start, self.line, start - self.line_start + 1)
            values.append(token)
            self.position = position = end

    def _finished(self) -> Child:
        if self._reduce(END) is None and self.states[-1] == self.complete:
            return self.values[-1]
        raise Stuck

    def feed(self, token: Token) -> None:
        """Take a token that the text does not have; raise Stuck if the grammar does not allow it."""
        state = self._reduce(token[0])
        if state is None:
            raise Stuck
        self.states.append(state)
        self.values.append(token)
        self.last = token

    def _reduce(self, terminal: str) -> int | None:
        """Reduce values until ``terminal`` can follow; return the state after it, None if it cannot follow."""
        states, values, program = self.states, self.values, self.program
        actions, renamed, gotos = program.actions, program.renamed, program.tables.gotos
        while True:
            state = states[-1]
            action: Any = actions[state].get(terminal)  # Any: as above
            if type(action) is not tuple:
                found: int | None = action
                return found
            size, symbol, build = action
            if build is None:
                key = (states[-2], state, terminal)
                states[-1] = renamed[key] if key in renamed else program.rename(*key)
            elif size == 1:
                values[-1] = build(self.builder, values[-1:])
                states[-1] = gotos[states[-2]][symbol]
            else:
                value = build(self.builder, values[-size:] if size else [])
                if size:
                    del states[-size:], values[-size:]
                values.append(value)
                states.append(gotos[states[-1]][symbol])
            if states[-1] == self.complete:
                return None

    # ---- terminals that the grammar allows

    def fits(self, terminal: str) -> bool:
        """Return whether a terminal may stand here."""
        return self._stack_after(self.states, terminal) is not None

    def _stack_after(self, stack: list[int], terminal: str) -> list[int] | None:
        base, top = len(stack), list[int]()
        while (action := self.tables.actions[top[-1] if top else stack[base - 1]].get(terminal)) is not None:
            if action >= 0:
                return [base, *top, action]
            rule = self.tables.rules[-1 - action]
            base -= max(rule.size - len(top), 0)
            del top[max(len(top) - rule.size, 0) :]
            top.append(self.tables.gotos[top[-1] if top else stack[base - 1]][rule.symbol])
            if terminal == END and top[-1] == self.complete:
                return [base, *top]
        return None

    def expected(self, *before: str) -> frozenset[str]:
        """Return the terminals that may stand here, after ``before``."""
        stack = self.states
        for name in before:
            found = self._stack_after(stack, name)
            if found is None:
                return frozenset()
            stack = [*stack[: found[0]], *found[1:]]
        return frozenset(name for name in self.tables.actions[stack[-1]] if self._stack_after(stack, name) is not None)

    def depth_for(self, *terminals: str) -> int | None:
        """Return how many values to keep so that one of ``terminals`` fits; None if none can."""
        stack = self.states
        if any(self._stack_after(stack, name) is not None for name in terminals):
            return len(stack) - 1
        for depth in range(len(stack) - 2, -1, -1):
            row = self.tables.actions[stack[depth]]
            if any(row.get(name, -1) >= 0 for name in terminals):
                return depth
        return None

    def pop(self, depth: int) -> None:
        """Keep the first ``depth`` values."""
        del self.states[depth + 1 :]
        del self.values[depth:]
