"""Read the body of a program: ranks of threadblocks of instructions, a megabyte at a time without a Python loop.

There are four kinds of lines: a line opens a rank, opens a threadblock, is an instruction, or closes a rank or
threadblock. The number of open ones determines which kinds may follow. Rows are collected in the order of the text.
Dependencies may point forward, so they become row numbers at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from ..arrays import Array, as_column
from ..collective import Collective
from ..diagnostic import CollcError
from ..program import INSTRUCTION_COLUMNS, Opcode, Program
from ..ragged import nth, owners, starts
from .reader import Table
from .scan import Tokens, slabs
from .source import Text, shown
from .words import BUFFERS, OPCODES, PROGRAM_WORDS

__all__ = ["read_program"]
Pattern = tuple[tuple[int, ...], ...]

# The code of a token is the number of its word, or one of these.
_NUMBER = len(PROGRAM_WORDS)
_COLON, _DOT, _OPEN, _CLOSE, _UNKNOWN = range(_NUMBER + 1, _NUMBER + 6)
_NAMES = (*(f"`{word}`" for word in PROGRAM_WORDS), "a number", "`:`", "`.`", "`{`", "`}`")
_WORD = {word: (number,) for number, word in enumerate(PROGRAM_WORDS)}
_ANY_BUFFER = tuple(range(len(OPCODES), len(OPCODES) + len(BUFFERS)))
_ANY_OPCODE = tuple(range(len(OPCODES)))

# Kinds of lines. The number of a kind is the depth at which it may stand; a closing line may stand at any depth.
_RANK, _BLOCK, _INSTRUCTION, _END = range(4)
_NEEDED = ("`rank` or `}`", "`threadblock` or `}`", "an instruction or `}`", "the end of the text")

_RANK_LINE: Pattern = (_WORD["rank"], (_NUMBER,), _WORD["scratch"], (_NUMBER,), (_OPEN,))
_BLOCK_LINE: Pattern = (
    _WORD["threadblock"], (_NUMBER,), _WORD["send"], (_NUMBER, *_WORD["none"]),
    _WORD["recv"], (_NUMBER, *_WORD["none"]), _WORD["channel"], (_NUMBER,), (_OPEN,),
)  # fmt: skip


def _instruction_line(opcode: Opcode) -> Pattern:
    src = (_ANY_BUFFER, (_NUMBER,)) if opcode.reads_src else ()
    dst = (_WORD["->"], _ANY_BUFFER, (_NUMBER,)) if opcode.writes_dst else ()
    count = (_WORD["count"], (_NUMBER,)) if opcode is not Opcode.NOP else ()
    return ((_NUMBER,), (_COLON,), (int(opcode),), *src, *dst, *count)


_INSTRUCTION_LINES = tuple(_instruction_line(opcode) for opcode in Opcode)
_START_OF_INSTRUCTION: Pattern = ((_NUMBER,), (_COLON,), _ANY_OPCODE)
_DEPENDENCY: Pattern = ((_NUMBER,), (_DOT,), (_NUMBER,))


def read_program(text: Text, body: Table, collective: Collective, chunks: int, name: str, scheduler: str) -> Program:
    """Return the program whose ranks, and the ``}`` after them, are the lines of ``body``."""
    reading = _Body(text)
    for tokens in slabs(text, body.begin, body.end):
        reading.read(_Lines.of(tokens))
    if reading.depth >= 0:
        raise text.fail("C0802", "expected `}`, found the end of the text", body.end, body.end + 1)
    return Program(collective, chunks, name=name, scheduler=scheduler, placed=False, **reading.columns())


@attrs.frozen(eq=False)
class _Lines:
    """Lines that are not blank: the code of every token, the first tokens of lines, and their numbers of tokens."""

    tokens: Tokens
    code: Array
    value: Array
    first: Array
    count: Array

    @classmethod
    def of(cls, tokens: Tokens) -> _Lines:
        code = np.full(len(tokens.start), _UNKNOWN, dtype=np.int8)
        value = np.zeros(len(tokens.start), dtype=np.int64)
        character = tokens.data[tokens.start]
        letters = np.flatnonzero((character >= ord("a")) & (character <= ord("z")) | (character == ord("-")))
        words = tokens.words(letters, PROGRAM_WORDS)
        code[letters] = np.where(words < 0, _UNKNOWN, words)
        numbers = np.flatnonzero((character >= ord("0")) & (character <= ord("9")))
        code[numbers] = _NUMBER
        value[numbers] = tokens.numbers(numbers)
        for mark, kind in ((":", _COLON), (".", _DOT), ("{", _OPEN), ("}", _CLOSE)):
            code[character == ord(mark)] = kind
        count = np.diff(tokens.lines)
        return cls(tokens, code, value, tokens.lines[:-1][count > 0], count[count > 0])

    def kinds(self, depth: int) -> tuple[Array, int]:
        """Return the kind of every line and the depth after them; raise C0802 at a line out of place."""
        begin = self.code[self.first]
        kind = np.select(
            [begin == _WORD["rank"], begin == _WORD["threadblock"], begin == _NUMBER, begin == _CLOSE],
            [_RANK, _BLOCK, _INSTRUCTION, _END], -1,
        )  # fmt: skip
        after = depth + np.cumsum(((kind == _RANK) | (kind == _BLOCK)).astype(np.int64) - (kind == _END))
        before = np.concatenate([[depth], after[:-1]])
        fits = np.where(kind == _END, before >= 0, (kind == before) & (kind >= 0))
        if not fits.all():
            line = int(np.argmin(fits))
            found = shown(self.tokens.string(int(self.first[line])))
            needed = _NEEDED[min(before[line], 2)]
            raise self.tokens.fail("C0802", int(self.first[line]), f"expected {needed}, found {found}")
        return kind, int(after[-1]) if len(after) else depth

    def require(self, lines: Array, pattern: Pattern, more: bool = False) -> None:
        """Require that lines follow a pattern; with ``more`` they may have further tokens."""
        short = self.count[lines] < len(pattern)
        wrong = short | (self.count[lines] > len(pattern)) if not more else short
        for place, allowed in enumerate(pattern):
            token = np.minimum(self.first[lines] + place, len(self.code) - 1)
            wrong |= ~np.isin(self.code[token], allowed) if len(allowed) > 1 else self.code[token] != allowed[0]
        if wrong.any():
            line = int(lines[np.argmax(wrong)])
            raise self.mismatch(int(self.first[line]), int(self.first[line] + self.count[line]), pattern)

    def mismatch(self, token: int, end: int, pattern: Pattern) -> CollcError:
        """Return the error for tokens that do not follow a pattern."""
        for allowed in pattern:
            needed = "an opcode" if allowed == _ANY_OPCODE else " or ".join(_NAMES[kind] for kind in allowed)
            if token == end:
                return self.tokens.fail_at_end(token - 1, f"expected {needed}, found the end of the line")
            if self.code[token] not in allowed:
                found = shown(self.tokens.string(token))
                return self.tokens.fail("C0802", token, f"expected {needed}, found {found}")
            token += 1
        found = shown(self.tokens.string(token))
        return self.tokens.fail("C0802", token, f"expected the end of the line, found {found}")

    def take(self, lines: Array, place: int) -> Array:
        """Return the value of one token of each of these lines."""
        taken: Array = self.value[self.first[lines] + place]
        return taken

    def require_numbered(self, lines: Array, expected: Array, what: str) -> None:
        """Require that the number of each of these lines is the expected one."""
        token = self.first[lines] + (0 if what == "step" else 1)
        wrong = self.value[token] != expected
        if wrong.any():
            row = int(np.argmax(wrong))
            found = f"found {self.value[token[row]]}"
            message = f"expected {what} {expected[row]}, {found}: {what}s count from 0 in order"
            raise self.tokens.fail("C0802", int(token[row]), message)


_COLUMNS = (
    "scratch", "first_block", "block_rank", "send_peer", "recv_peer", "channel", "block_start",
    *INSTRUCTION_COLUMNS, "dep_count", "dep_row", "dep_block", "dep_step", "dep_place",
)  # fmt: skip


@attrs.define
class _Body:
    """The columns read so far, in portions, with counts and the number of open braces inside the program."""

    text: Text
    depth: int = 0
    ranks: int = 0
    blocks: int = 0
    instructions: int = 0
    rank_start: int = 0  # the first block of the current rank
    block_start: int = 0  # the first instruction of the current block
    portions: dict[str, list[Array]] = attrs.field(factory=lambda: {name: [] for name in _COLUMNS})

    def _add(self, **columns: Array) -> None:
        for name, column in columns.items():
            self.portions[name].append(as_column(column))

    def read(self, lines: _Lines) -> None:
        """Add some lines."""
        kind, self.depth = lines.kinds(self.depth)
        ranks, blocks, rows = (np.flatnonzero(kind == k) for k in (_RANK, _BLOCK, _INSTRUCTION))
        lines.require(np.flatnonzero(kind == _END), ((_CLOSE,),))
        # the number of blocks before each rank, and of instructions before each block
        rank_start = self.blocks + np.searchsorted(blocks, ranks)
        block_start = self.instructions + np.searchsorted(rows, blocks)
        self._read_ranks(lines, ranks, rank_start)
        self._read_blocks(lines, blocks, np.searchsorted(ranks, blocks), rank_start, block_start)
        self._read_instructions(lines, rows, np.searchsorted(blocks, rows), block_start)
        self.ranks, self.blocks = self.ranks + len(ranks), self.blocks + len(blocks)
        self.instructions += len(rows)
        self.rank_start = int(np.append(self.rank_start, rank_start)[-1])
        self.block_start = int(np.append(self.block_start, block_start)[-1])

    def _read_ranks(self, lines: _Lines, ranks: Array, rank_start: Array) -> None:
        lines.require(ranks, _RANK_LINE)
        lines.require_numbered(ranks, self.ranks + np.arange(len(ranks)), "rank")
        self._add(scratch=lines.take(ranks, 3), first_block=rank_start)

    def _read_blocks(self, lines: _Lines, blocks: Array, rank: Array, rank_start: Array, block_start: Array) -> None:
        """Read threadblock lines. ``rank`` is the rank of each: 0 was open before, others open in these lines."""
        lines.require(blocks, _BLOCK_LINE)
        first = np.append(self.rank_start, rank_start)[rank]
        lines.require_numbered(blocks, self.blocks + np.arange(len(blocks)) - first, "threadblock")
        peers = [np.where(lines.code[lines.first[blocks] + place] == _NUMBER, lines.take(blocks, place), -1)
                 for place in (3, 5)]  # fmt: skip
        self._add(
            block_rank=self.ranks - 1 + rank, send_peer=peers[0], recv_peer=peers[1],
            channel=lines.take(blocks, 7), block_start=block_start,
        )  # fmt: skip

    def _read_instructions(self, lines: _Lines, rows: Array, block: Array, block_start: Array) -> None:
        """Read instruction lines. ``block`` is the threadblock of each: 0 was open before, others open here."""
        lines.require(rows, _START_OF_INSTRUCTION, more=True)
        first = np.append(self.block_start, block_start)[block]
        lines.require_numbered(rows, self.instructions + np.arange(len(rows)) - first, "step")
        table = np.zeros((len(INSTRUCTION_COLUMNS), len(rows)), dtype=np.int64)
        table[0] = lines.code[lines.first[rows] + 2]
        length = np.zeros(len(rows), dtype=np.int64)
        for opcode in Opcode:
            some = np.flatnonzero(table[0] == opcode)
            lines.require(rows[some], _INSTRUCTION_LINES[opcode], more=True)
            table[1:, some] = _operands(lines, rows[some], opcode)
            length[some] = len(_INSTRUCTION_LINES[opcode])
        self._add(**dict(zip(INSTRUCTION_COLUMNS, table, strict=True)))
        self._read_dependencies(lines, rows, length)

    def _read_dependencies(self, lines: _Lines, rows: Array, length: Array) -> None:
        """Read what follows the ``length`` tokens of instructions: no tokens, or ``after`` BLOCK.STEP .."""
        rest = lines.count[rows] - length
        waiting = np.flatnonzero(rest > 0)
        word = lines.first[rows[waiting]] + length[waiting]
        number = np.zeros(len(rows), dtype=np.int64)
        number[waiting] = np.maximum(-(-(rest[waiting] - 1) // 3), 1)
        # the first token of every pair; an incomplete pair continues on the next line, where it is an error
        owner = owners(number)
        pair = (lines.first[rows] + length + 1)[owner] + 3 * nth(number)
        wrong = (lines.code[word] != _WORD["after"]) | ((rest[waiting] - 1) % 3 != 0)
        bad = np.zeros(len(rows), dtype=bool)
        bad[waiting] = wrong
        for place, allowed in enumerate(_DEPENDENCY):
            token = np.minimum(pair + place, len(lines.code) - 1)
            bad[owner[lines.code[token] != allowed[0]]] = True
        if bad.any():
            row = int(np.argmax(bad))
            start = int(lines.first[rows[row]] + length[row])
            end = int(lines.first[rows[row]] + lines.count[rows[row]])
            raise lines.mismatch(start, end, (_WORD["after"], *_DEPENDENCY * int(number[row])))
        self._add(
            dep_count=number, dep_row=self.instructions + owner, dep_block=lines.value[pair],
            dep_step=lines.value[pair + 2], dep_place=lines.tokens.base + lines.tokens.start[pair],
        )  # fmt: skip

    # ---- the end

    def columns(self) -> dict[str, Array]:
        """Return the columns of the program; raise C0802 at a dependency on an instruction that does not exist."""
        all_of = {name: _joined(portions) for name, portions in self.portions.items()}
        block_start = np.append(all_of.pop("block_start"), self.instructions)
        first_block = np.append(all_of.pop("first_block"), self.blocks)
        dep_count = all_of.pop("dep_count")
        deps = {name: all_of.pop(f"dep_{name}") for name in ("row", "block", "step", "place")}
        block = np.searchsorted(block_start, deps["row"], side="right") - 1
        rank = all_of["block_rank"][block]
        there = deps["block"] < first_block[rank + 1] - first_block[rank]
        target = np.where(there, first_block[rank] + deps["block"], 0)
        there &= deps["step"] < block_start[target + 1] - block_start[target]
        if not there.all():
            missing = int(np.argmin(there))
            place = int(deps["place"][missing])
            name = f"{deps['block'][missing]}.{deps['step'][missing]}"
            message = f"expected an instruction of rank {rank[missing]}, found {name}, which does not exist"
            raise self.text.fail("C0802", message, place, place + len(name))
        rows = block_start[target] + deps["step"]
        dep_start = starts(dep_count)
        return {**all_of, "block_start": block_start, "dep_start": dep_start, "deps": rows}


def _operands(lines: _Lines, rows: Array, opcode: Opcode) -> Array:
    """Return the INSTRUCTION_COLUMNS after the opcode, as rows, of instructions with this opcode."""
    result = np.zeros((len(INSTRUCTION_COLUMNS) - 1, len(rows)), dtype=np.int64)
    place = 3
    if opcode.reads_src:
        result[0] = lines.code[lines.first[rows] + place] - len(OPCODES)
        result[1] = lines.take(rows, place + 1)
        place += 2
    if opcode.writes_dst:
        result[2] = lines.code[lines.first[rows] + place + 1] - len(OPCODES)
        result[3] = lines.take(rows, place + 2)
        place += 3
    if opcode is not Opcode.NOP:
        result[4] = lines.take(rows, place + 1)
    return result


def _joined(portions: Sequence[Array]) -> Array:
    return np.concatenate([np.zeros(0, dtype=np.int64), *portions]).astype(np.int64)
