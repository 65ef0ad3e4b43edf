"""Verify a program stored as that of the first ranks and a group: execute these, of which all others are images.

All ranks of an orbit do the same at the same time, so what arrives from the image of rank i under element p is what
rank i sends to the receiver's image under p^-1, moved by p: shards and the ranks of contributions become their images.
This holds if multiplication by p^-1 after p is none, for the elements of all peers and for all elements, which is
checked. No rank's state is left out: the state of an image is that of the rank, moved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array, distinct, lexsort
from ..frozen import frozen
from ..layout import total
from ..machine import execute, partners, receivers
from ..program import Buffer, Opcode
from ..ragged import inverse, owners, ranges
from ..symmetric import TEMPLATE_KINDS, SymmetricSchedule
from ..symmetric_program import SymmetricProgram
from ..validate import flaws
from ..waves import least_depth
from ._coarse import coarser
from ._products import products_agree
from .program import MAX_IN_WAVES, verify_program
from .report import Check, Report

__all__ = ["template_adds_once", "template_strayed", "verify_symmetric_program"]

_OPCODES = (
    Opcode.SEND, Opcode.RECV, Opcode.COPY, Opcode.RECV_REDUCE_COPY,
    Opcode.RECV_COPY_SEND, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND,
)  # fmt: skip
_ALONE = (Opcode.RECV_COPY_SEND, Opcode.RECV_REDUCE_SEND, Opcode.RECV_REDUCE_COPY_SEND)
_LOCAL = (Opcode.SEND, Opcode.COPY)
_BLOCK = 1 << 22  # products of the group checked together
_FEW_PEERS = 2  # peers up to which their products are checked one by one


def verify_symmetric_program(program: SymmetricProgram) -> Report:
    """Execute the first ranks symbolically and report the result of each check.

    The checks are, in this order: ``structure``, ``symmetry``, ``numbering`` if there is one, ``bounds``,
    ``out-of-place input is not written``, ``matched``, ``deadlock``, ``races``, ``single reduction``,
    ``postcondition``. The first that fails ends them.
    """
    collective = program.collective
    return Report("program", collective.kind, collective.num_ranks, tuple(_until_wrong(_checks(program))))


def template_adds_once(program: SymmetricProgram) -> bool:
    """Return whether a verified program adds every contribution once, so that it is correct for any operation."""
    return not program.collective.idempotent or _Values(program, False).run(strict=True) == ""


def template_strayed(program: SymmetricProgram, schedule: SymmetricSchedule) -> str:
    """Return where a program sends other chunks than the template from which it was lowered; "" if nowhere.

    A program that does not execute is for the verifier; the result is empty.
    """
    if next(iter(flaws(program)), None) or _form(program) or _outside(program) or _unmatched(program):
        return ""
    if program.group != schedule.symmetry:
        return f"its group is {program.group.shown}, not {schedule.symmetry.shown}"
    execution = execute(program.batched)
    values = _Values(program, False, execution.finished)
    if execution.deadlock or values.run(strict=False):
        return ""
    seed, width = schedule.seed, program.width
    source = seed.src.astype(np.int64)
    home = program.group.inverse(source // width)
    lo, count = seed.lo.astype(np.int64), seed.hi.astype(np.int64) - seed.lo
    ends = source % width, program.moved(home, seed.dst)
    if program.fixed:  # part p of all shards is chunks p*N to (p + 1)*N - 1 of the vector
        row, part = owners(count), ranges(lo, count)
        place = part * program.num_ranks + program.moved(home, seed.shard)[row]
        due = _sent_keys(ends[0][row], ends[1][row], place, np.ones_like(part), program)
    else:
        shard = program.moved_shards(home, seed.shard)
        due = _sent_keys(*ends, shard * schedule.parts + lo, count, program)
    found = _sent_keys(*values.sent_runs(), program)
    if np.array_equal(found, due):
        return ""
    apart = np.setxor1d(found, due)
    at = int(apart[0]) if len(apart) else int(found[0])
    chunks = program.collective.num_shards * program.chunks
    rank, peer = divmod(at // chunks, program.num_ranks)
    which, chunk = divmod(at % chunks, program.chunks)
    if program.fixed:
        chunk, which = divmod(at % chunks, program.num_ranks)
    return f"chunk {chunk} of shard {which} from rank {rank} to rank {peer}"


def _sent_keys(rank: Array, peer: Array, first: Array, count: Array, program: SymmetricProgram) -> Array:
    """Return a number for every chunk that a rank of the seed sends to a peer, sorted."""
    pair = np.repeat(rank * program.num_ranks + peer, count)
    keys: Array = np.sort(pair * (program.collective.num_shards * program.chunks) + ranges(first, count))
    return keys


def _until_wrong(checks: Iterator[Check]) -> Iterator[Check]:
    for check in checks:
        yield check
        if not check.ok:
            return


def _checks(program: SymmetricProgram) -> Iterator[Check]:
    seed, width = program.seed, program.width
    text = f"{seed.num_blocks} threadblocks, {len(program.message_start) - 1} messages and copies of {program.seeds}"
    yield _check("structure", next((str(flaw) for flaw in flaws(program)), "") or _form(program), text)
    group = f"the group {program.group.shown} of order {program.group.order}"
    programs = "rank 0's program" if width == 1 else f"the programs of {program.seeds}"
    moves = f"{group} moves {programs} to all ranks" if width < program.num_ranks else "all ranks are listed"
    yield _check("symmetry", _asymmetry(program), moves)
    yield from _numbering(program)
    if width == program.num_ranks:
        yield from _listed_checks(program)
        return
    yield _check("bounds", _outside(program), "rank 0's buffers" if width == 1 else f"the buffers of {program.seeds}")
    into_input = np.flatnonzero(seed.writes_dst & (seed.dst_buffer == Buffer.INPUT))
    wrong = f"{seed.place(int(into_input[0]))} writes to the input" if len(into_input) else ""
    yield _check("out-of-place input is not written", wrong, "no instruction writes it")
    yield _check("matched", _unmatched(program), _messages(program))
    execution = execute(program.batched)
    stuck = execution.deadlock.describe(program.batched) if execution.deadlock else ""
    yield _check("deadlock", stuck, f"completes with FIFOs of depth {execution.depth}")
    wrong = next(filter(None, (_race(program, execution.finished, inplace) for inplace in _race_modes(program))), "")
    yield _check("races", wrong, "in place and out of place")
    values = [_Values(program, inplace, execution.finished) for inplace in (False, True)]
    strict = not program.collective.idempotent
    wrong = _ordered(program) or values[0].run(strict) or values[1].run(strict)
    yield _check("single reduction", wrong, "in place and out of place")
    text = f"executed {width} of {program.num_ranks} ranks, all others by {group}, checked; in place and out of place"
    yield _check("postcondition", values[0].missing() or values[1].missing(), text)


def _listed_checks(program: SymmetricProgram) -> Iterator[Check]:
    """Yield the checks of a program that lists all ranks: every run is executed as a message of its own.

    The runs of a message follow each other in one threadblock, and whatever waits for it waits for the last. So what is
    ordered by runs is ordered by messages too, and both have the same results. Messages are matched as they are.
    """
    yield _check("matched", _unmatched(program), _messages(program))
    depth, stuck = least_depth(program.batched, None), ""
    if depth is None:
        execution = execute(program.batched)
        depth, stuck = execution.depth, execution.deadlock.describe(program.batched) if execution.deadlock else ""
    yield _check("deadlock", stuck, f"completes with FIFOs of depth {depth}")
    whole = program.unfold()
    coarse = coarser(whole) if total(whole) <= MAX_IN_WAVES else None
    report = verify_program(coarse or whole)
    if coarse is not None and not report.ok:
        report = verify_program(whole)  # says where the mistake is
    for check in report.checks:
        if check.name == "bounds" and check.ok:
            yield Check("bounds", True, f"{total(whole)} chunks in all buffers")
        elif check.name not in ("structure", "matched", "deadlock"):
            yield check


def _messages(program: SymmetricProgram) -> str:
    ranks = "each rank" if program.width == 1 else program.seeds
    return f"{int(program.batched.sends.sum())} messages of {ranks}"


def _check(name: str, problem: str, detail: str) -> Check:
    return Check(name, not problem, problem or detail)


def _ordered(program: SymmetricProgram) -> str:
    c = program.collective
    return f"`op: {c.op}` needs the order of ranks, which collc cannot verify of a program" if c.ordered else ""


# ---- form


def _form(program: SymmetricProgram) -> str:
    """Return what is wrong with the messages and the opcodes of a template; "" if nothing is."""
    seed = program.seed
    if not np.isin(seed.opcode, _OPCODES).all():
        return f"{seed.place(int(np.argmin(np.isin(seed.opcode, _OPCODES))))}: a template has no such instruction"
    joined = np.flatnonzero(program.joined)
    alone = (joined == 0) | (seed.block[joined] != seed.block[joined - 1])
    alone |= seed.opcode[joined] != seed.opcode[joined - 1]
    into_scratch = (seed.src_buffer == Buffer.INPUT) & (seed.dst_buffer == Buffer.SCRATCH)  # such copies have no order
    alone |= (seed.opcode[joined] == Opcode.COPY) & ~(into_scratch[joined] & into_scratch[joined - 1])
    if alone.any() or np.isin(seed.opcode[joined], _ALONE).any():
        row = int(joined[np.argmax(alone)]) if alone.any() else int(joined[0])
        return f"{seed.place(row)} has no message before it to join"
    if program.joined[seed.dependent].any() or program.joined[seed.deps].any():
        return "a dependency is not between the first instructions of messages"
    if ((seed.send_peer == seed.block_rank) | (seed.recv_peer == seed.block_rank)).any():
        return f"a threadblock of {program.seeds} has its own rank as peer"
    sent, received = program.connections
    for keys, what in ((sent, "send into"), (received, "receive from")):
        used = np.sort(keys[keys >= 0])
        if (used[1:] == used[:-1]).any():
            return f"two threadblocks of {program.seeds} {what} one connection"
    return ""


def _asymmetry(program: SymmetricProgram) -> str:
    """Return where the group does not move one rank's program to another's; "" if it always does."""
    group, n, width = program.group, program.num_ranks, program.width
    c, numbers = program.collective, np.arange(group.order)
    if group.order * width != n or not c.is_plain or c.kind not in TEMPLATE_KINDS:
        return f"the group {group.shown} of order {group.order} moves no {c.name} of {n} ranks"
    products = group.multiply(0, numbers), group.multiply(numbers, 0)
    if not all(np.array_equal(product, numbers) for product in products):
        return f"rank 0 is not the identity of the group {group.shown}"
    peers = np.concatenate([program.seed.send_peer, program.seed.recv_peer]).astype(np.int64)
    elements = distinct(peers[peers >= 0] // width)
    if len(elements) > _FEW_PEERS and products_agree(group, elements):
        return ""
    for peer in elements.tolist():
        back, away = int(group.inverse(peer)), group.multiply(numbers, peer)
        rows = max(1, _BLOCK // group.order)
        for first in range(0, group.order, rows):
            ranks = numbers[first : first + rows, None]
            sent = group.multiply(ranks, numbers[None, :])
            received = group.multiply(away[first : first + rows, None], group.multiply(back, numbers)[None, :])
            if not np.array_equal(sent, received):
                rank, shard = (int(x[0]) for x in np.nonzero(sent != received))
                peer = int(away[first + rank]) * width
                return f"shard {shard * width} of rank {(first + rank) * width} is another one at its peer {peer}"
    return ""


def _numbering(program: SymmetricProgram) -> Iterator[Check]:
    """Yield whether a numbering gives every chunk a place of its own, in buffers that hold the whole vector."""
    if not len(program.numbering):
        return
    chunks = program.collective.num_shards * program.chunks
    whole = program.moves(Buffer.INPUT) and program.moves(Buffer.OUTPUT)
    wrong = "" if whole else f"the chunks of {program.collective.name} have fixed places"
    if whole and not np.array_equal(np.sort(program.numbering), np.arange(chunks)):
        wrong = f"the numbers of its {chunks} chunks are not all different"
    yield _check("numbering", wrong, f"{chunks} chunks have places of their own, the same on all ranks")


def _outside(program: SymmetricProgram) -> str:
    """Return which instruction leaves its buffer or, where shards move, its shard."""
    seed = program.seed
    scratch = seed.scratch[: program.width].astype(np.int64)
    sizes = np.stack([scratch * 0 + seed.input_chunks(0), scratch * 0 + seed.output_chunks(0), scratch])
    moved = np.array([program.moves(buffer) for buffer in Buffer])
    for end, used in (("src", seed.reads_src), ("dst", seed.writes_dst)):
        buffer, offset = getattr(seed, f"{end}_buffer")[used], getattr(seed, f"{end}_offset").astype(np.int64)[used]
        count = seed.count.astype(np.int64)[used]
        beyond = (offset < 0) | (offset + count > sizes[buffer, seed.rank[used]]) | (count < 1)
        beyond |= moved[buffer] & (offset // seed.chunks != (offset + count - 1) // seed.chunks)
        if beyond.any():
            row = int(np.flatnonzero(used)[np.argmax(beyond)])
            return f"{seed.place(row)}: {end} is outside its buffer, or crosses shards"
    return ""


def _unmatched(program: SymmetricProgram) -> str:
    """Return which message has no other end, or one of another length."""
    batched = program.batched
    partner = partners(batched)
    lost = np.flatnonzero(batched.receives & (partner < 0))
    if not len(lost):
        lost = np.flatnonzero(batched.sends & (receivers(partner) < 0))
    if len(lost):
        return f"{_place(program, int(lost[0]))} has no message at the other end"
    got = np.flatnonzero(partner >= 0)
    other = got[batched.count[got] != batched.count[partner[got]]]
    if len(other):
        at = int(other[0])
        return f"{_place(program, at)} receives {batched.count[at]} chunks of {batched.count[partner[at]]}"
    return ""


def _place(program: SymmetricProgram, message: int) -> str:
    return program.seed.place(int(program.message_start[message]))


# ---- races


def _race_modes(program: SymmetricProgram) -> tuple[bool, ...]:
    """Return in which uses, in place or not, accesses are compared.

    In place more locations are one, so that use covers the other, unless a copy does nothing in place.
    """
    return (True, False) if _idle(_Atoms.of(program, True), program).any() else (True,)


def _idle(atoms: _Atoms, program: SymmetricProgram) -> Array:
    """Return which atoms, by access to a dst, a copy copies onto themselves: that changes nothing."""
    copies = program.seed.opcode == Opcode.COPY
    idle = np.zeros(len(atoms.dst), dtype=bool)
    idle[copies[atoms.dst_row]] = atoms.src[copies[atoms.src_row]] == atoms.dst[copies[atoms.dst_row]]
    return idle


def _race(program: SymmetricProgram, finished: Array, inplace: bool) -> str:
    """Return two messages that access a chunk, one of them a write, and that their rank's own order leaves unordered.

    Only program order and dependencies count, not messages: these lead to other ranks. A copy of a place onto itself
    counts as a read alone.
    """
    batched = program.batched
    position = np.empty(batched.num_instructions, dtype=np.int64)
    position[finished] = np.arange(len(finished))
    location, message, write = _accesses(program, inplace)
    order = lexsort((write, position[message], location))
    location, message, write = location[order], message[order], write[order]
    before = _clocks(program, finished)
    last_write, reads = -1, list[int]()
    previous = -1
    step, block = batched.step, _local(program)
    for here, at, writes in zip(location.tolist(), message.tolist(), write.tolist(), strict=True):
        if here != previous:
            last_write, reads, previous = -1, [], here
        for other in (*((last_write,) if last_write >= 0 else ()), *(reads if writes else ())):
            if other != at and before[at, block[other]] <= step[other]:
                return f"{_place(program, at)} and {_place(program, other)} access one chunk in either order"
        if writes:
            last_write, reads = at, []
        else:
            reads.append(at)
    return ""


def _local(program: SymmetricProgram) -> Array:
    """Return for each message the number of its block among those of its rank."""
    found: Array = program.batched.block_id[program.batched.block]
    return found


def _clocks(program: SymmetricProgram, finished: Array) -> Array:
    """Return for each message the steps of each block of its rank that end before it begins.

    The shape is (messages, most blocks of a rank). Dependencies are within ranks.
    """
    batched = program.batched
    block, step, start = _local(program), batched.step, batched.block_start.astype(np.int64)
    clock = np.zeros((batched.num_instructions, int(block.max(initial=0)) + 1), dtype=np.int64)
    begin = start[batched.block]
    for at in finished.tolist():
        own = clock[at]
        here_block = int(block[at])
        if step[at]:
            np.maximum(own, clock[at - 1], out=own)
        for other in batched.dependencies(at):
            np.maximum(own, clock[other], out=own)
            own[block[other]] = max(own[block[other]], int(step[other]) + 1)
        own[here_block] = at - int(begin[at])
    return clock


def _accesses(program: SymmetricProgram, inplace: bool) -> tuple[Array, Array, Array]:
    """Return every access to an atom of the seed's ranks: location, message, whether it writes."""
    atoms = _Atoms.of(program, inplace)
    moves = ~_idle(atoms, program)
    found = []
    for places, rows, writes in (
        (atoms.src, atoms.src_row, False), (atoms.dst[moves], atoms.dst_row[moves], True),
    ):  # fmt: skip
        found.append((places, program.message[rows], np.full(len(places), writes)))
    location, message, write = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return location, message, write


@frozen(eq=False)
class _Atoms:
    """The memory of the seed's ranks in atoms, which instructions access as a whole: ``per_shard`` of them in a shard.

    ``src`` and ``dst`` are the locations that instructions access, ``src_row`` and ``dst_row`` the instructions;
    ``cuts`` are the ends of the atoms in chunks. ``base`` is the first location of each buffer, shape (ranks, 3),
    ``total`` the number of locations.
    """

    src: Array
    src_row: Array
    dst: Array
    dst_row: Array
    cuts: Array
    base: Array
    total: int

    @property
    def per_shard(self) -> int:
        return len(self.cuts) - 1

    @classmethod
    def of(cls, program: SymmetricProgram, inplace: bool) -> _Atoms:
        cuts = _cuts(program)
        seed, per_shard = program.seed, len(cuts) - 1
        n, own = program.num_ranks, np.arange(program.width)
        # in place the smaller buffer is the place of the rank's own shard in the larger one
        places = [own * (inplace and not program.moves(buffer)) for buffer in (Buffer.INPUT, Buffer.OUTPUT)]
        apart = 0 if inplace else n
        size = apart + n + -(-int(seed.scratch.max(initial=0)) // seed.chunks)
        base = (np.stack([places[0], places[1] + apart, own * 0 + apart + n], axis=1) + own[:, None] * size) * per_shard
        found, used_by = [], []
        for end, used in (("src", seed.reads_src), ("dst", seed.writes_dst)):
            rows = np.flatnonzero(used)
            offset, count = getattr(seed, f"{end}_offset").astype(np.int64)[rows], seed.count.astype(np.int64)[rows]
            first = _atom(cuts, offset, seed.chunks)
            widths = _atom(cuts, offset + count, seed.chunks) - first
            found.append(ranges(first + base[seed.rank[rows], getattr(seed, f"{end}_buffer")[rows]], widths))
            used_by.append(rows[owners(widths)])
        return cls(found[0], used_by[0], found[1], used_by[1], cuts, base, len(own) * size * per_shard)


def _atom(cuts: Array, chunk: Array, chunks: int) -> Array:
    """Return the number of the atom that begins at a chunk of a buffer."""
    return chunk // chunks * (len(cuts) - 1) + np.searchsorted(cuts, chunk % chunks)


def _cuts(program: SymmetricProgram) -> Array:
    """Return the ends of atoms of a shard in chunks: all ends of accesses.

    If chunks change their places in shards, atoms have one size, of which all these ends are multiples.
    """
    seed, chunks = program.seed, program.chunks
    count = seed.count.astype(np.int64)
    ends = [np.array([0, chunks])]
    for end, used in (("src", seed.reads_src), ("dst", seed.writes_dst)):
        offset = getattr(seed, f"{end}_offset").astype(np.int64)[used]
        ends += [offset % chunks, (offset + count[used]) % chunks]
    cuts = distinct(np.concatenate(ends))
    return cuts if _keeps_places(program) else np.arange(0, chunks + 1, int(np.gcd.reduce(cuts)))


def _keeps_places(program: SymmetricProgram) -> bool:
    """Return whether all chunks keep their places in shards, counted modulo a shard in scratch too."""
    seed, chunks = program.seed, program.chunks
    src, dst = (offset.astype(np.int64) % chunks for offset in (seed.src_offset, seed.dst_offset))
    both = seed.reads_src & seed.writes_dst
    if (src[both] != dst[both]).any():
        return False
    if not seed.scratch.any():
        return True  # the two ends of a message are places in shards
    start, partner = program.message_start, partners(program.batched)
    arriving = np.flatnonzero(partner >= 0)
    size = np.diff(start)
    if (size[arriving] != size[partner[arriving]]).any():
        return False
    here, there = (ranges(start[of], size[arriving]) for of in (arriving, partner[arriving]))
    stored, sent = np.where(seed.writes_dst, dst, src)[here], np.where(seed.reads_src, src, dst)[there]
    return bool((seed.count[here] == seed.count[there]).all() and (stored == sent).all())


# ---- values


class _Values:
    """The execution of the seed's ranks: the atom of the vector in each location, and the ranks that contributed."""

    def __init__(self, program: SymmetricProgram, inplace: bool, finished: Array | None = None):
        self.program, self.inplace = program, inplace
        self.finished = execute(program.batched).finished if finished is None else finished
        self.atoms = _Atoms.of(program, inplace)
        self.content = np.full(self.atoms.total, -1, dtype=np.int64)
        self.reduces = program.collective.reduces
        self.ranks = np.zeros((self.atoms.total, program.num_ranks if self.reduces else 1), dtype=bool)
        self._sent: list[tuple[int, int, Array]] = []
        self._origins = dict[int, Array]()  # by element, the rank whose image each rank is
        self._begin()

    def sent_runs(self) -> tuple[Array, Array, Array, Array]:
        """Return what :meth:`run` sent, atom by atom: rank, peer, the first chunk in the vector, and the chunks."""
        none = [np.zeros(0, np.int64)]
        rank, peer = (
            np.concatenate([np.full(len(one[2]), one[end]) for one in self._sent] or none) for end in (0, 1)
        )  # fmt: skip
        content = np.concatenate([content for *_, content in self._sent] or none)
        cuts, per_shard = self.atoms.cuts, self.atoms.per_shard
        atom = content % per_shard
        return rank, peer, content // per_shard * self.program.chunks + cuts[atom], np.diff(cuts)[atom]

    def _begin(self) -> None:
        c = self.program.collective
        for rank in range(self.program.width):
            held = np.flatnonzero(c.holds(rank, np.arange(c.num_shards)))
            place, content = self._at(rank, Buffer.INPUT, c.input_slots(rank, held), held)
            self.content[place] = content
            self.ranks[place, rank if self.reduces else 0] = True

    def _at(self, rank: int, buffer: Buffer, slots: Array, shards: Array) -> tuple[Array, Array]:
        """Return the locations of shards at slots of a rank's buffer, and the atoms of the vector that belong there."""
        per_shard = self.atoms.per_shard
        widths = np.full(len(shards), per_shard)
        return ranges(slots * per_shard + self.atoms.base[rank, buffer], widths), ranges(shards * per_shard, widths)

    def run(self, strict: bool) -> str:
        """Execute all messages; return what is wrong, "" if nothing is. ``strict``: nothing may be added twice."""
        program, batched = self.program, self.program.batched
        partner, sent = partners(batched), dict[int, tuple[Array, Array]]()
        edges = np.append(program.message_start, 0)[:-1]
        src, dst = (np.searchsorted(rows, edges) for rows in (self.atoms.src_row, self.atoms.dst_row))
        ends = list(zip(batched.rank.tolist(), program.seed.send_peer[batched.block].tolist(), strict=True))
        opcode, peer = batched.opcode.tolist(), program.seed.recv_peer[batched.block].tolist()
        for at in self.finished.tolist():
            read = self.atoms.src[src[at] : src[at + 1]]
            written = self.atoms.dst[dst[at] : dst[at + 1]]
            if (self.content[read] < 0).any():
                return f"{_place(program, at)} reads data that no instruction has written"
            code = Opcode(opcode[at])
            if code in _LOCAL:
                value = self.content[read], self.ranks[read]
            else:
                value = self._moved(*sent.pop(int(partner[at])), int(peer[at]))
            if code.reduces:
                if not np.array_equal(self.content[read], value[0]):
                    return f"{_place(program, at)} adds different chunks"
                if strict and (self.ranks[read] & value[1]).any():
                    return f"{_place(program, at)} adds a contribution twice"
                value = value[0], self.ranks[read] | value[1]
            if code.sends:
                sent[at] = value
                self._sent.append((*ends[at], value[0]))
            if not code.writes_dst:
                continue
            if len(value[0]) != len(written):
                return f"{_place(program, at)}: the two ends cut the message at other places"
            self.content[written], self.ranks[written] = value
        return ""

    def _moved(self, content: Array, ranks: Array, peer: int) -> tuple[Array, Array]:
        """Return what arrives from a peer, the image under an element, from what the seed's rank sends."""
        program, per_shard = self.program, self.atoms.per_shard
        element = peer // program.width
        moved = program.moved_shards(element, content // per_shard) * per_shard + content % per_shard
        if not self.reduces:
            return moved, ranks
        if element not in self._origins:
            self._origins[element] = inverse(program.moved(element, np.arange(program.num_ranks)))
        return moved, ranks.take(self._origins[element], axis=1)  # a tenth of the time of an assignment to columns

    def missing(self) -> str:
        """Return what a rank of the seed lacks at the end; "" if nothing."""
        return next(filter(None, map(self._missing, range(self.program.width))), "")

    def _missing(self, rank: int) -> str:
        per_shard, c = self.atoms.per_shard, self.program.collective
        results = np.flatnonzero(c.wants(rank, np.arange(c.num_shards)))
        place, due = self._at(rank, Buffer.OUTPUT, c.output_slots(rank, results), results)
        bad = self.content[place] != due
        if self.reduces:
            bad |= ~self.ranks[place].all(axis=1)
        if not bad.any():
            return ""
        at = int(due[np.argmax(bad)])
        chunk = int(self.atoms.cuts[at % per_shard])
        return f"rank {rank} ends without the result of shard {at // per_shard}, from chunk {chunk} on"
