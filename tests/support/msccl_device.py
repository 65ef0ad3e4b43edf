"""A second, independent model of the runtimes: runs the text of an MSCCL-XML file on numbers, in a random order.

It shares nothing with the backend: it reads with the tokeniser's model, follows the parsers line by line (folded
waits, merged reductions, the device's own step numbers) and moves integers through FIFOs. Where threadblocks race, some
order gives a wrong sum; where they wait for each other, it says so.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import attrs
from msccl_files import nodes

__all__ = ["Hang", "run"]

SENDS, RECEIVES = {"s", "rcs", "rrs", "rrcs"}, {"r", "rcs", "rrc", "rrs", "rrcs"}


class Hang(Exception):
    """No threadblock can go on, or a launch leaves data behind."""


@attrs.define
class Transfer:
    kind: str
    src: tuple[str, int]
    dst: tuple[str, int]
    count: int
    waits: list[tuple[int, int]]
    flag: bool
    sources: list[int]


@attrs.define
class Block:
    send: int
    recv: int
    channel: int
    transfers: list[Transfer]
    at: int = 0  # transfer
    chunk: int = 0  # of it
    step: int = 0  # as the device counts
    flagged: int = -1


def parse(text: str) -> tuple[dict[str, str], dict[int, tuple[int, dict[int, Block]]]]:
    """Return the algorithm's attributes and, by rank, its scratch chunks and threadblocks."""
    head: dict[str, str] = {}
    ranks: dict[int, tuple[int, dict[int, Block]]] = {}
    steps: list[dict[str, Any]] = []
    open_block: dict[str, str] = {}
    rank = -1
    for kind, name, values in nodes(text):
        if name == "algo" and kind == "open":
            head = values
        elif name == "gpu" and kind == "open":
            rank = int(values["id"])
            ranks[rank] = (int(values["s_chunks"]), {})
        elif name == "tb" and kind != "close":
            open_block, steps = values, []
        elif name == "step":
            steps.append({k: v if k in ("type", "srcbuf", "dstbuf") else int(v, 0) for k, v in values.items()})
        if name == "tb" and kind != "open":
            peers = [int(open_block[k]) for k in ("send", "recv", "chan")]
            ranks[rank][1][int(open_block["id"])] = Block(*peers, transfers(steps))  # type: ignore[arg-type]
    return head, ranks


def transfers(steps: list[dict[str, Any]]) -> list[Transfer]:
    """Return what the parsers make of a threadblock's steps."""
    made: list[Transfer] = []
    waits: list[tuple[int, int]] = []
    old: tuple[str, int, str] | None = None
    reductions = 0
    for step in steps:
        if step["depid"] >= 0:
            waits.append((step["depid"], step["deps"]))
        if step["type"] == "nop":
            continue
        here = (step["dstbuf"], step["dstoff"], step["srcbuf"])
        is_sum = step["type"] == "re"
        if is_sum and old == here and step["depid"] == -1:
            last = made[-1]
            last.sources.append(step["srcoff"])
            last.count, last.flag = step["cnt"], bool(step["hasdep"])
        else:
            assert not waits or step["depid"] >= 0, "the parser rejects this"
            src, dst = (step["srcbuf"], step["srcoff"]), (step["dstbuf"], step["dstoff"])
            made.append(Transfer(step["type"], src, dst, step["cnt"], waits, bool(step["hasdep"]), [step["srcoff"]]))
            waits = []
        reductions += is_sum
        old = here if is_sum and not step["hasdep"] and reductions != 16 else None
    return made


@attrs.define
class Device:
    """All ranks at work on one tile."""

    blocks: dict[int, dict[int, Block]]
    memory: dict[int, dict[str, tuple[list[Any], int]]]  # rank -> buffer -> (cells, where it starts in them)
    sizes: dict[str, int]
    depth: int
    split: int
    fifos: dict[tuple[int, int, int], deque[list[Any]]] = attrs.Factory(dict)

    def cell(self, rank: int, place: tuple[str, int], chunk: int) -> tuple[list[Any], int]:
        cells, start = self.memory[rank][place[0]]
        offset = place[1] + chunk
        assert 0 <= offset < self.sizes[place[0]], "out of bounds"
        return cells, start + offset

    def load(self, rank: int, place: tuple[str, int], chunk: int) -> Any:
        cells, at = self.cell(rank, place, chunk)
        return cells[at]

    def store(self, rank: int, place: tuple[str, int], chunk: int, value: Any) -> None:
        cells, at = self.cell(rank, place, chunk)
        cells[at] = value

    def can_go(self, rank: int, block: Block) -> bool:
        """Whether the next primitive of an unfinished block can be done."""
        transfer = block.transfers[block.at]
        if block.chunk == 0 and any(self.blocks[rank][b].flagged < s for b, s in transfer.waits):
            return False
        incoming = self.fifos.setdefault((block.recv, rank, block.channel), deque())
        outgoing = self.fifos.setdefault((rank, block.send, block.channel), deque())
        if transfer.kind in RECEIVES and not incoming:
            return False
        return transfer.kind not in SENDS or len(outgoing) < self.depth

    def go(self, rank: int, block: Block) -> None:
        """Do the next primitive: up to ``split`` chunks of the transfer."""
        transfer = block.transfers[block.at]
        if block.chunk == 0:
            block.step += max(len(transfer.waits) - 1, 0)
        chunks = range(block.chunk, min(block.chunk + self.split, transfer.count))
        data = self.fifos[block.recv, rank, block.channel].popleft() if transfer.kind in RECEIVES else None
        assert data is None or len(data) == len(chunks), "the two ends differ in count"
        out = [self._chunk(rank, transfer, c, data[i] if data else None) for i, c in enumerate(chunks)]
        if transfer.kind in SENDS:
            self.fifos[rank, block.send, block.channel].append(out)
        block.chunk = chunks.stop
        if block.chunk >= transfer.count:
            block.step += len(transfer.sources) - 1
            if transfer.flag:
                block.flagged = block.step
            block.step, block.chunk, block.at = block.step + 1, 0, block.at + 1

    def _chunk(self, rank: int, transfer: Transfer, chunk: int, came: Any) -> Any:
        match transfer.kind:
            case "s":
                return self.load(rank, transfer.src, chunk)
            case "r" | "rcs":
                value = came
            case "cpy":
                value = self.load(rank, transfer.src, chunk)
            case "re":
                value = self.load(rank, transfer.dst, chunk)
                for source in transfer.sources:
                    value = value + self.load(rank, (transfer.src[0], source), chunk)
            case _:
                value = self.load(rank, transfer.src, chunk) + came
        if transfer.kind != "rrs":
            self.store(rank, transfer.dst, chunk, value)
        return value


def run(text: str, *, inplace: bool, depth: int, split: int, seed: int) -> bool:
    """Return whether every rank ends with what the collective promises, for one random order. Raises Hang."""
    head, ranks = parse(text)
    luck = random.Random(seed)
    n, total, kind = len(ranks), int(head["nchunksperloop"]), head["coll"].replace("_", "")
    per = total // n
    into = per if kind == "allgather" else total
    out = per if kind == "reducescatter" else total
    given = {r: [luck.randrange(1 << 40) for _ in range(into)] for r in range(n)}
    memory: dict[int, dict[str, tuple[list[Any], int]]] = {}
    for r, (scratch, _) in ranks.items():
        junk = [luck.randrange(1 << 40) for _ in range(max(into, out))]
        start_in, start_out = (r * per if into < out else 0), (r * per if out < into else 0)
        cells_in = junk[:] if inplace else [*junk]
        cells_out = cells_in if inplace else junk[:]
        for k, value in enumerate(given[r]):
            cells_in[start_in + k] = value
        memory[r] = {"i": (cells_in, start_in), "o": (cells_out, start_out), "s": ([luck.randrange(99)] * scratch, 0)}
    sizes = {"i": into, "o": out, "s": max(s for s, _ in ranks.values())}
    device = Device({r: blocks for r, (_, blocks) in ranks.items()}, memory, sizes, depth, split)
    _drive(device, luck)
    for r in range(n):
        cells, start = memory[r]["o"]
        if cells[start : start + out] != list(_expected(kind, r, n, per, given)):
            return False
    return True


def _drive(device: Device, luck: random.Random) -> None:
    todo = [(r, b) for r, blocks in device.blocks.items() for b in blocks.values() if b.transfers]
    while todo:
        ready = [(r, b) for r, b in todo if device.can_go(r, b)]
        if not ready:
            raise Hang("nobody can go on")
        # Mostly one block runs on as far as it can: that brings out races better than taking turns.
        rank, block = luck.choice(ready)
        for _ in range(luck.choice([1, 1, 4, 100])):
            device.go(rank, block)
            if block.at >= len(block.transfers):
                todo = [(r, b) for r, b in todo if b is not block]
                break
            if not device.can_go(rank, block):
                break
    if any(device.fifos.values()):
        raise Hang("data are left in a connection")


def _expected(kind: str, rank: int, n: int, per: int, given: dict[int, list[int]]) -> Iterator[int]:
    everyone = range(n)
    if kind == "allreduce":
        yield from (sum(given[r][k] for r in everyone) for k in range(n * per))
    elif kind == "reducescatter":
        yield from (sum(given[r][rank * per + k] for r in everyone) for k in range(per))
    elif kind == "allgather":
        yield from (value for r in everyone for value in given[r])
    else:
        assert kind == "alltoall"
        yield from (given[r][rank * per + k] for r in everyone for k in range(per))
