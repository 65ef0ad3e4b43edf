"""One-sided program -> text; equal programs give equal bytes. One operation stands on a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns, distinct, lexsort
from collc.ir.one_sided.opcodes import ADDS, WORDS, Op, table
from collc.ir.one_sided.program import NO_CHANNEL, OneSided, Transport
from collc.ir.program import Buffer
from collc.ir.progress import counting
from collc.ir.ragged import by_appearance, group_starts, inverse, nth_in_group, ranges, starts

from .model import LETTERS, LINKED, NAMES, SPELLINGS
from .windows import Sizes

__all__ = ["arranged", "write"]

_COUNTED = table(Op.SIGNAL, Op.WAIT, Op.RLXSIGNAL, Op.RLXWAIT, Op.FLUSH, *LINKED)
_SEMAPHORES = table(Op.SEM_ACQUIRE, Op.SEM_RELEASE)


def arranged(program: OneSided) -> OneSided:
    """Return the program as a plan holds it: channels of a rank by transport, and equal chunk counts on all ranks."""
    order = lexsort((program.channel_transport, program.channel_rank))
    if (order != np.arange(len(order))).any():
        program = _with_channels(program, order)
    counts: Columns = {
        "inputs": _equal(program.inputs, 1), "outputs": _equal(program.outputs, 1),
        "scratch": _equal(program.scratch, 0) if program.double_scratch else program.scratch,
    }  # fmt: skip
    different: Columns = {name: column for name, column in counts.items() if (column != getattr(program, name)).any()}
    return attrs.evolve(program, **different) if different else program


def _with_channels(program: OneSided, order: Array) -> OneSided:
    place = np.append(inverse(order), NO_CHANNEL)
    of_semaphores = np.isin(program.opcode[program.link_operation], [Op.SEM_ACQUIRE, Op.SEM_RELEASE])
    counts = np.diff(program.group_start.astype(np.int64))
    groups = program.groups
    members = [groups[program.group_start[row] : program.group_start[row + 1]] for row in order.tolist()]
    return attrs.evolve(
        program, group_start=starts(counts[order]), groups=np.concatenate(members) if members else groups,
        links=np.where(of_semaphores, program.links, place[program.links.astype(np.int64) % len(place)]),
        item_channel=place[program.item_channel.astype(np.int64)],
        **{
            name: getattr(program, name)[order]
            for name in ("channel_rank", "channel_peer", "channel_transport", "channel_buffer")
        },
    )  # fmt: skip


def _equal(counts: Array, least: int) -> Array:
    return np.full(len(counts), max(int(counts.max(initial=least)), least))


def write(program: OneSided, title: str, sizes: Sizes) -> str:
    """Return the plan of an arranged program. Its name is a title and a hash of all the rest.

    Executors keep the channels of a plan by its name (notes, 5.18), so plans that differ have different names.
    """
    head = [
        f'  "collective": "{SPELLINGS.get(program.collective.kind, program.collective.kind)}",',
        f'  "protocol": "{"LL" if program.packets else "Simple"}",',
        f'  "inplace": {_truth(program.inplace)},',
        f'  "reuse_resources": {_truth(program.reuse)},',
    ]
    tail = [
        f'  "num_threads_per_block": {program.threads},',
        f'  "use_double_scratch_buffer": {_truth(program.double_scratch)},',
        f'  "buffer_alignment": {program.alignment},',
        f'  "min_message_size": {sizes.low},',
        f'  "max_message_size": {sizes.high}',
    ]
    ranks = list(_separated(_Writer(program).ranks()))
    body = "\n".join([*head, '  "gpus": [', *ranks, "  ],", *tail, "}", ""])
    name = f"{title}-{sha256(body.encode()).hexdigest()[:12]}"
    return f'{{\n  "name": {json.dumps(name)},\n{body}'


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _separated(elements: Iterator[list[str]]) -> Iterator[str]:
    """Yield the lines of elements with commas between them."""
    last: list[str] = []
    for element in elements:
        if last:
            yield from last[:-1]
            yield f"{last[-1]},"
        last = element
    yield from last


def _numbers(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values))}]"


class _Writer:
    """Writes the ranks of one program."""

    def __init__(self, program: OneSided):
        self.program = program
        self.channels = program.channels
        ranks = program.num_ranks
        self.first_channel = group_starts(program.channel_rank, ranks).tolist()
        self.first_semaphore = group_starts(program.semaphore_rank, ranks).tolist()
        self.first_block = program.rank_blocks.tolist()
        self.block_start = program.block_start.tolist()
        self.loop = program.loop.tolist()
        self.named = _Named(program)
        self.texts = _texts(program, self.named)

    def ranks(self) -> Iterator[list[str]]:
        """Yield the lines of each rank."""
        for rank in counting(range(self.program.num_ranks), "writing ranks"):
            yield _Rank(self, rank).lines()


# ---- numbers


class _Named:
    """The numbers by which operations name channels, semaphores and remote buffers: those of their block.

    ``link[k]`` is the number of link k, ``item[k]`` says of item k where it is, its buffer or its number, its first
    chunk and its chunks. ``channels`` and ``buffers`` list, by block and transport, the numbers of the rank that its
    operations name; ``remote`` lists the remote buffers of each rank, with the transports that reach them.
    """

    def __init__(self, program: OneSided):
        self.program = program
        self.rank = program.rank
        of = program.item_operation
        self.link = np.zeros(len(program.links), dtype=np.int64)
        through = program.item_channel != NO_CHANNEL
        away = ~through & (program.item_rank != self.rank[of])
        number = program.item_buffer.astype(np.int64)
        number[through] = self._channels(of[through], program.item_channel.astype(np.int64)[through])
        number[away] = self._buffers(of[away], np.flatnonzero(away))
        where = np.where(through, _SWITCH, np.where(away, _PEER, _HERE))
        self.item = np.stack([where, number, program.item_offset, program.item_count], axis=1, dtype=np.int64)

    def _lists(self, of: Array, transport: Array) -> Array:
        return self.program.block[of] * len(NAMES) + transport

    def _channels(self, of: Array, channel: Array) -> Array:
        """Number channels, and return the numbers of those of switches, which items of operations ``of`` name."""
        program, links = self.program, self.program.links.astype(np.int64)
        op = program.opcode[program.link_operation]
        semaphore, counted = np.flatnonzero(_SEMAPHORES[op]), np.flatnonzero(_COUNTED[op])
        first = group_starts(program.semaphore_rank, program.num_ranks)
        self.link[semaphore] = links[semaphore] - first[self.rank[program.link_operation[semaphore]]]
        user = np.concatenate([of, program.link_operation[counted]])
        transport = np.concatenate([np.full(len(of), int(Transport.SWITCH)), program.transport[user[len(of) :]]])
        order = lexsort([user])  # an operation names its items, then its channels
        row = np.concatenate([channel, links[counted]])
        kind = program.channel_rank.astype(np.int64) * len(NAMES) + program.channel_transport
        place = np.empty(len(kind), dtype=np.int64)
        by_kind = lexsort([kind])
        place[by_kind] = nth_in_group(kind[by_kind])
        lists = self._lists(user, transport)
        found, listed = by_appearance(lists[order], place[row[order]])
        listed = order[listed]
        self.channels = _grouped(lists[listed], place[row[listed]])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = found
        self.link[counted] = number[len(of) :]
        return number[: len(of)]

    def _buffers(self, of: Array, item: Array) -> Array:
        """Return the numbers of remote buffers in the blocks of operations ``of``, which name them by ``item``."""
        program, rank = self.program, self.rank[of]
        transport = program.transport.astype(np.int64)[of]
        owned = program.item_rank.astype(np.int64)[item] * len(Buffer) + program.item_buffer[item]
        of_rank, listed = by_appearance(rank, owned)
        access: dict[tuple[int, int], list[int]] = {}
        for row in by_appearance(rank * len(NAMES) + transport, of_rank)[1].tolist():
            access.setdefault((int(rank[row]), int(of_rank[row])), []).append(int(transport[row]))
        self.remote: dict[int, list[tuple[int, int, list[int]]]] = {}
        for row in listed.tolist():
            owner, buffer = divmod(int(owned[row]), len(Buffer))
            reach = sorted(access[int(rank[row]), int(of_rank[row])])
            self.remote.setdefault(int(rank[row]), []).append((owner, buffer, reach))
        lists = self._lists(of, transport)
        found, listed = by_appearance(lists, of_rank)
        self.buffers = _grouped(lists[listed], of_rank[listed])
        return found


def _grouped(lists: Array, numbers: Array) -> dict[int, list[int]]:
    """Return the numbers of each list."""
    found: dict[int, list[int]] = {}
    for key, number in zip(lists.tolist(), numbers.tolist(), strict=True):
        found.setdefault(key, []).append(number)
    return found


# ---- operations

_HERE, _PEER, _SWITCH = range(3)
_FIXED = ("opcode", "transport", "share", "shares", "number", "blocks", "sources")


def _texts(program: OneSided, named: _Named) -> list[str]:
    """Return the text of each operation; equal ones are written once."""
    num_items, num_links = (np.diff(one.astype(np.int64)) for one in (program.item_start, program.link_start))
    head = np.stack([*(getattr(program, name) for name in _FIXED), num_items], axis=1, dtype=np.int64)
    first = starts(head.shape[1] + 4 * num_items + num_links)
    of_item = first[:-1] + head.shape[1]
    flat = np.empty(int(first[-1]), dtype=np.int64)
    flat[first[:-1, None] + np.arange(head.shape[1])] = head
    flat[ranges(of_item, 4 * num_items)] = named.item.ravel()
    flat[ranges(of_item + 4 * num_items, num_links)] = named.link
    like, items = _likes(flat, first).tolist(), _Items()
    known = {row: _text(flat[first[row] : first[row + 1]].tolist(), items) for row in dict.fromkeys(like)}
    return [known[row] for row in like]


def _likes(flat: Array, first: Array) -> Array:
    """Return for each list ``flat[first[i]:first[i + 1]]`` the first that equals it."""
    size = np.diff(first)
    like = np.empty(len(size), dtype=np.int64)
    for width in distinct(size).tolist():
        rows = np.flatnonzero(size == width)
        table = flat[first[rows, None] + np.arange(width)]
        order = lexsort(list(table.T))
        fresh = np.ones(len(rows), dtype=bool)
        fresh[1:] = (table[order][1:] != table[order][:-1]).any(axis=1)
        like[rows[order]] = rows[order[fresh]][np.cumsum(fresh) - 1]
    return like


def _text(numbers: list[int], known: _Items) -> str:
    """Return the text of an operation, its keys in the DSL's order."""
    op, transport, share, shares, barrier, blocks, sources, num_items = numbers[:8]
    end = 8 + 4 * num_items
    fields = [f'"name": "{WORDS[op]}"']
    if op == Op.BARRIER:
        fields.append(f'"barrier_id": {barrier}, "num_threadblocks": {blocks}')
    elif _SEMAPHORES[op]:
        fields.append(f'"semaphore_ids": {_numbers(numbers[end:])}')
    items = [known[tuple(numbers[at : at + 4])] for at in range(8, end, 4)]
    for key, side in (("src_buff", items[:sources]), ("dst_buff", items[sources:])):
        if side:
            fields.append(f'"{key}": [{", ".join(side)}]')
    if _COUNTED[op] and len(numbers) > end:
        fields.append(f'"channel_ids": {_numbers(numbers[end:])}')
    if transport != Transport.LOCAL:
        fields.append(f'"channel_type": "{_TRANSPORTS[transport]}"')
    if ADDS[op]:
        fields.append('"reduce_op": "sum"')
    if shares > 1:
        fields.append(f'"tbg_info": {{"tb_id": {share}, "tbg_size": {shares}}}')
    return f"{{{', '.join(fields)}}}"


class _Items(dict[tuple[int, ...], str]):
    """The texts of items by their numbers; most stand in several operations."""

    def __missing__(self, numbers: tuple[int, ...]) -> str:
        text = self[numbers] = _item(*numbers)
        return text


def _item(where: int, number: int, offset: int, count: int) -> str:
    if where == _HERE:
        return f'{{"type": "{_LETTERS[number]}", "index": {offset}, "size": {count}}}'
    key = "buffer_id" if where == _PEER else "switch_channel_id"
    return f'{{"{key}": {number}, "index": {offset}, "size": {count}}}'


#: words and letters by the numbers of columns
_TRANSPORTS = [NAMES[transport] for transport in (Transport.MEMORY, Transport.PORT, Transport.SWITCH)]
_LETTERS = [LETTERS[buffer] for buffer in Buffer]


# ---- ranks


class _Rank:
    """Writes one rank."""

    def __init__(self, writer: _Writer, rank: int):
        self.writer, self.rank = writer, rank
        self.of: dict[int, list[int]] = {transport: [] for transport in NAMES}
        for row in range(writer.first_channel[rank], writer.first_channel[rank + 1]):
            self.of[writer.channels[row].transport].append(row)

    def lines(self) -> list[str]:
        """Return the lines of the rank."""
        program, writer = self.writer.program, self.writer
        blocks = range(writer.first_block[self.rank], writer.first_block[self.rank + 1])
        listed = list(_separated(self.block(number, block) for number, block in enumerate(blocks)))
        counts = zip(("input", "output", "scratch"), (program.inputs, program.outputs, program.scratch), strict=True)
        return [
            "    {",
            f'      "id": {self.rank},',
            *(f'      "{name}_chunks": {column[self.rank]},' for name, column in counts),
            *_array("      ", "threadblocks", listed, ","),
            *_array("      ", "channels", _separated([f"        {one}"] for one in self.channels()), ","),
            *_array("      ", "remote_buffers", _separated([f"        {one}"] for one in self.buffers()), ","),
            *_array("      ", "semaphores", _separated([f"        {one}"] for one in self.semaphores())),
            "    }",
        ]

    def channels(self) -> Iterator[str]:
        """Yield the entries of channels: one for each transport, and one for each channel of a switch."""
        for transport, rows in self.of.items():
            if transport != Transport.SWITCH and rows:
                peers = [self.writer.channels[row].peer for row in rows]
                yield f'{{"channel_type": "{_TRANSPORTS[transport]}", "connected_to": {_numbers(peers)}}}'
        for row in self.of[Transport.SWITCH]:
            channel = self.writer.channels[row]
            size = int((self.writer.program.inputs, self.writer.program.outputs)[channel.buffer == 1][self.rank])
            group = f'[{{"size": {size}, "ranks": {_numbers(channel.group)}}}]'
            letter = LETTERS[channel.buffer]
            yield f'{{"channel_type": "switch", "buffer_type": "{letter}", "rank_groups": {group}}}'

    def buffers(self) -> Iterator[str]:
        """Yield the entries of remote buffers."""
        for owner, buffer, access in self.writer.named.remote.get(self.rank, ()):
            kinds = ", ".join(f'"{_TRANSPORTS[one]}"' for one in access)
            yield f'{{"rank": {owner}, "type": "{_LETTERS[buffer]}", "access_channel_types": [{kinds}]}}'

    def semaphores(self) -> Iterator[str]:
        """Yield the entries of semaphores."""
        first, last = self.writer.first_semaphore[self.rank : self.rank + 2]
        for value in self.writer.program.semaphore_value[first:last].tolist():
            yield f'{{"init_value": {value}}}'

    def block(self, number: int, block: int) -> list[str]:
        """Return the lines of a block."""
        named = self.writer.named
        channels, buffers = (
            [(name, lists[key]) for kind, name in enumerate(_TRANSPORTS) if (key := block * len(NAMES) + kind) in lists]
            for lists in (named.channels, named.buffers)
        )
        named_channels = (f'{{"channel_type": "{name}", "channel_ids": {_numbers(ids)}}}' for name, ids in channels)
        named_buffers = (
            f'{{"access_channel_type": "{name}", "remote_buffer_ids": {_numbers(ids)}}}' for name, ids in buffers
        )
        start = self.writer.block_start
        return [
            "        {",
            f'          "id": {number},',
            *_array("          ", "ops", self.operations(start[block], start[block + 1]), ","),
            f'          "channels": [{", ".join(named_channels)}],',
            f'          "remote_buffer_refs": [{", ".join(named_buffers)}]',
            "        }",
        ]

    def operations(self, at: int, end: int) -> list[str]:
        """Return the lines of operations, joined; those of a loop are inside a pipeline."""
        texts, loop, program = self.writer.texts, self.writer.loop, self.writer.program
        found = []
        while at < end:
            number = loop[at]
            stop = next((row for row in range(at, end) if loop[row] != number), end)
            if number < 0:
                found.append(_joined("            ", texts[at:stop]))
            else:
                context = f'{{"unit_size": {program.loop_unit[number]}, "num_chunks": {program.loop_chunks[number]}}}'
                opened = f'            {{"name": "pipeline", "iter_context": {context}, "ops": ['
                found.append("\n".join([opened, _joined("              ", texts[at:stop]), "            ]}"]))
            at = stop
        return [",\n".join(found)] if found else []


def _joined(indent: str, texts: Sequence[str]) -> str:
    return indent + f",\n{indent}".join(texts)


def _array(indent: str, name: str, lines: Sequence[str] | Iterator[str], end: str = "") -> list[str]:
    listed = list(lines)
    return [f'{indent}"{name}": [', *listed, f"{indent}]{end}"] if listed else [f'{indent}"{name}": []{end}']
