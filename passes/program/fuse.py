"""Fuse receives and sends into one instruction, in threadblocks that do both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from operator import le
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.layout import granule
from collc.ir.machine import Deadlock, completes_with, execute
from collc.ir.program import BLOCK_COLUMNS, Program
from collc.ir.progress import progress
from collc.ir.ragged import inverse
from collc.ir.symmetric_program import AnyProgram, SymmetricProgram

from ..analysis.arrange import reblock
from ..analysis.hazards import agree, conflicts, known_conflicts, sequential_order
from ..analysis.timing import Times, duration, play
from ..base import Pass, remark
from ..ranges import AT_LEAST_1
from .assembling import assemble
from .limits import steps
from .merging import merge
from .orbit_joining import JoinLimits, Turns, block_steps, in_pairs
from .orbit_messages import relays
from .orbit_relays import Forwarding
from .pairing import Pairs, flows, pair_blocks
from .relays import followed, most_forwarded, why_not_fused, without_delay
from .unfuse import Unfuse, unfused_messages

__all__ = ["STRATEGIES", "Fuse"]

#: how blocks may be paired, most threadblocks first
STRATEGIES = ("apart", "flow", "few")
_COPIES_APART = "few without copies"

#: default size of a call, and the latency of a message in bytes that a link moves in that time
_SIZE, _START = 1 << 24, 1 << 16
#: a strategy with fewer threadblocks may take 1/_MARGIN more time, for schedules by hand 1/_BY_HAND
_MARGIN = 8
_BY_HAND = 4
#: by hand, fewer steps may take 1/_STEPS more time
_STEPS = 32
#: joined blocks that take this many times as long as all apart do not pay, nor do more of them
_HOPELESS = 2
#: relays are worth another program if more than 1/_GAIN of the instructions can be fused in addition
_GAIN = 32
_ROUNDS = 4


@frozen
class _Measures:
    """A program's time, its most threadblocks of a rank, most steps of a threadblock, steps of all, and channels."""

    threadblocks: int
    time: int
    longest: int
    steps: int
    channels: int

    @property
    def by_threadblocks(self) -> tuple[int, int, int, int]:
        return self.threadblocks, self.time, self.longest, self.steps

    def is_no_worse(self, other: _Measures) -> bool:
        return self.channels <= other.channels and all(map(le, self.by_threadblocks, other.by_threadblocks))


@frozen(eq=False)
class _Joined:
    """A program, the former blocks of each of its blocks, and the receives that are fused with a send."""

    program: Program
    members: tuple[list[int], ...]
    fused: Array
    measures: Callable[[], _Measures]


@frozen(eq=False)
class _Draft:
    """A program whose blocks may be joined: its times, order and conflicts, and the pairs (receive, send) of relays.

    ``prompt`` are the relays whose fusion delays nothing, ``through`` those that delay nothing if data leave while they
    arrive.
    """

    program: Program
    times: Times
    order: Callable[[], Array]
    clashes: tuple[Array, Array]
    relays: tuple[Array, Array]
    prompt: tuple[Array, Array]
    through: tuple[Array, Array]

    @cached_property
    def place(self) -> Array:
        """Each instruction's place in the order to keep. Few programs need it, and it takes longest to find."""
        return self.order()


@frozen
class Fuse(Pass):
    """Let one threadblock receive and send, and fuse a receive with the send that forwards its data.

    recv + send becomes recv-copy-send. recv-reduce-copy + send becomes recv-reduce-copy-send, or recv-reduce-send if no
    instruction reads the stored data. ``strategy`` chooses the blocks to join:

    * ``apart``: none.
    * ``flow``: a receiving block and the sending block that forwards its data, those that forward most first.
    * ``few``: also all remaining blocks, with the same peer if possible.
    * ``auto`` builds these and takes the fastest by the model of :mod:`..analysis.timing`, or one with fewer
      threadblocks if it takes at most an eighth more time: threadblocks take GPU cores from computation. ``few`` is
      left out where ``flow`` takes over twice the time of ``apart``.

    If the author of the schedule chose the threadblocks, none are joined, and messages are fused within them.

    Of a template, messages are fused if more than an eighth of them can be forwarded as they arrive: on rings and tori
    (:mod:`.orbit_relays`). Other blocks stay ``apart``, unless they are too many or those of several ranks; then they
    may be joined as with ``few``. If no such template fits, or if FIFOs let only some ranks forward, the program is
    written out for all ranks.

    Joined blocks share a channel, so forwarded data stay on one channel. The pass renumbers channels. Fusing also helps
    runtimes without ``fused`` instructions: it finds the data that need not be stored, and `unfuse`, which must follow,
    needs fewer instructions. FIFOs of ``fifo_depth`` messages (default 2) suffice for every split of messages into
    chunks: blocks are not joined, and instructions not fused, if that would deadlock.

    The chosen program gets more relays if nothing becomes worse: data leave while they arrive, so a send that follows a
    receive at once delays no other reader. A remark says why the other relays are not fused. With ``turns``, for
    schedules by hand, ``few`` first joins blocks that work at different times, every copy joins the block that needs
    it, FIFOs hold messages of the chunks that all messages have in common (:func:`~collc.ir.layout.granule`), and a
    quarter more time is allowed if there are fused instructions: an exchange of short messages in one threadblock takes
    a fifth.
    """

    name: ClassVar[str] = "fuse"
    summary: ClassVar[str] = "fuse receives and sends into one instruction and one threadblock"
    takes: ClassVar[type] = Program
    gives: ClassVar[type] = Program
    follows: ClassVar[tuple[str, ...]] = ("balance-threadblocks",)

    strategy: Literal["auto", "apart", "flow", "few"] = attrs.field(
        default="auto", metadata={"help": "which threadblocks to join: auto, apart, flow, few"}
    )
    fused: bool = attrs.field(
        default=True, metadata={"help": "whether the runtime has fused instructions; otherwise `unfuse` must follow"}
    )
    turns: bool = attrs.field(
        default=False, metadata={"help": "join threadblocks that work at different times before those of one peer"}
    )
    fifo_depth: int | None = attrs.field(
        default=None, metadata={"help": "messages a connection holds; default 2", "range": AT_LEAST_1}
    )
    max_steps: int | None = attrs.field(
        default=None, metadata={"help": "the most steps of a threadblock", "range": AT_LEAST_1}
    )
    max_channels: int | None = attrs.field(default=None, metadata={"help": "the most channels", "range": AT_LEAST_1})
    max_threadblocks: int | None = attrs.field(
        default=None, metadata={"help": "the most threadblocks of a rank of a template", "range": AT_LEAST_1}
    )
    max_count: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks of a template's instruction", "range": AT_LEAST_1}
    )
    max_elements: int | None = attrs.field(
        default=None,
        metadata={
            "help": "the most elements of a file that a rank reads: one, all ranks, its threadblocks and its steps",
            "range": AT_LEAST_1,
        },
    )
    size: int | None = attrs.field(
        default=None,
        metadata={
            "help": "bytes of a call, to compare times (default: the collective's size, or 16 MiB)",
            "range": AT_LEAST_1,
        },
    )

    def works_by_orbits(self, ir: SymmetricProgram) -> bool:
        return self.strategy == "apart" or (self.strategy == "auto" and self._of_template(ir) is not None)

    def run(self, ir: AnyProgram) -> AnyProgram:
        if isinstance(ir, SymmetricProgram):
            found = None if self.strategy == "apart" else self._of_template(ir)
            if found is not None:
                remark(found[1])
            return ir if found is None else found[0]
        if self.strategy == "apart" or not ir.num_instructions:
            return ir
        program = _with_single_copies(ir) if self.turns and not ir.placed else ir
        completes = completes_with(program, self._depth)
        draft = self._draft(program, cache(lambda: execute(program, self._depth if completes else None).finished))
        if ir.placed:
            own = Pairs(np.arange(program.num_blocks), lambda: program.channel.astype(np.int64))
            inside = self._build(draft, draft.relays, own)
            return inside.program if inside else ir
        if self.strategy != "auto":
            joined = self._build(draft, draft.prompt, self._pairs(draft, draft.prompt, self.strategy))
            return joined.program if joined else ir
        apart = self._with_measures(ir, (), np.zeros(0, dtype=np.int64)) if completes else None
        candidates = ({} if apart is None else {"apart": apart}) | self._candidates(draft, apart)
        if not candidates:
            return ir
        name = self._best(candidates)
        chosen = self._with_more_relays(draft, name, candidates[name])
        if self.fused:
            remark(why_not_fused(program, draft.clashes, draft.relays, draft.through, chosen.fused))
        return chosen.program

    def _draft(self, program: Program, finished: Callable[[], Array]) -> _Draft:
        times = play(program, _START, self._unit(program), finished)
        clashes = _clashes(program, times, finished)

        def order() -> Array:
            place = times.places(finished())
            return _with_results_last(program, place, clashes) if self.turns else place

        relays = flows(program, clashes)
        prompt = without_delay(program, times, clashes, relays)
        through = without_delay(program, times, clashes, relays, through=True) if self.fused else prompt
        return _Draft(program, times, order, clashes, relays, prompt, through)

    def _of_template(self, ir: SymmetricProgram) -> tuple[SymmetricProgram, str] | None:
        """Return a template with its blocks apart or joined, and why; None if the program of all ranks is better."""
        if self not in ir.found:
            ir.found[self] = self._with_few_blocks(ir)
        found: tuple[SymmetricProgram, str] | None = ir.found[self]
        return found

    def _with_few_blocks(self, ir: SymmetricProgram) -> tuple[SymmetricProgram, str] | None:
        turns = Turns.of(ir, _START, self._unit(ir.seed))
        flow = without_delay(ir.batched, turns.times, turns.clashes, relays(ir, turns.clashes))
        messages, prompt = int(ir.batched.receives.sum()), most_forwarded(ir.batched, flow)
        if prompt * _MARGIN > messages and not ir.fixed:
            return self._forwarded(ir)
        of = f"{prompt} of {messages} messages of {ir.seeds} can be forwarded as they arrive"
        if ir.fixed:  # whole vectors do not fit into FIFOs: blocks that receive and send would wait for each other
            of = "ranks exchange whole vectors"
        most, blocks = self.max_threadblocks, int(np.diff(ir.batched.rank_blocks).max(initial=0))
        if ir.width == 1 and (most is None or blocks <= most):
            return ir, f"fuse: strategy apart, because {of}"
        room = JoinLimits(self.max_steps, self.max_channels, self.max_count, self._depth, self.fused)
        found = {"apart": ir, "few": in_pairs(turns, room)}
        programs = {name: one for name, one in found.items() if one is not None}
        measured = {name: self._measures_of_template(one, room) for name, one in programs.items()}
        chosen = self._within(ir, measured)
        return chosen and (programs[chosen[0]], f"{chosen[1]}; {of}")

    def _forwarded(self, ir: SymmetricProgram) -> tuple[SymmetricProgram, str] | None:
        """Return a template in which messages are forwarded as they arrive, and why; None if there is none.

        Joined blocks are half as many. So those of twice as many channels are tried too: more data are on their way.
        """
        room = JoinLimits(self.max_steps, self.max_channels, self.max_count, self._depth, self.fused)
        programs, forwardings = {"apart": ir}, {}
        for number, forwarding in enumerate(Forwarding.of(ir, room, _START, self._unit(ir.seed))):
            for name, few in ("flow", False), ("few", True):
                joined = forwarding.joined(few)
                if joined is not None:
                    name += " on more channels" * number
                    programs[name], forwardings[name] = joined, (forwarding, few)
        if not forwardings:
            return None
        measured = {name: self._measures_of_template(one, room, self.fused) for name, one in programs.items()}
        chosen = self._within(ir, measured)
        if chosen is None:
            return None
        name, why = chosen
        forwarding, few = forwardings.get(name, next(iter(forwardings.values())))
        gained = len(forwarding.through[0]) - len(forwarding.prompt[0])
        if gained * _GAIN > forwarding.program.seed.num_instructions:
            more = forwarding.joined(few, through=True)
            after = None if more is None else self._measures_of_template(more, room, self.fused)
            if more is not None and after is not None and _is_better(after, measured[name]):
                return more, why
        return programs[name], why

    def _within(self, ir: SymmetricProgram, measured: dict[str, _Measures]) -> tuple[str, str] | None:
        """Return the best of the programs that have few enough threadblocks, and why; None if there is none.

        If some of them fit into a file that a rank can read, it is one of these.
        """
        most, elements = self.max_threadblocks, self.max_elements
        found = {name: one for name, one in measured.items() if most is None or one.threadblocks <= most}
        if elements is not None:
            others = 1 + ir.num_ranks
            fits = {
                name: one
                for name, one in found.items()
                if others + one.threadblocks + one.steps // ir.width <= elements
            }
            found = fits or found
        return self._chosen(found) if found else None

    def _measures_of_template(self, ir: SymmetricProgram, room: JoinLimits, fused: bool = True) -> _Measures:
        """Return the measures of a template; not ``fused``: of one whose messages are single instructions.

        Other messages are received and added run by run, which one instruction for each message does not show.
        """
        length = block_steps(ir, room)
        blocks = int(np.diff(ir.batched.rank_blocks).max(initial=0))
        batched = ir.batched if fused else unfused_messages(ir.batched)
        time = duration(batched, _START, self._unit(ir.seed), self._depth) or 0
        return _Measures(blocks, time, int(length.max(initial=0)), int(length.sum()), ir.num_channels)

    def _candidates(self, draft: _Draft, apart: _Joined | None) -> dict[str, _Joined]:
        """Return the programs of the strategies that join blocks, without those that promise no more than others.

        Each strategy joins all that the one before it does. If one takes far more time than the program whose blocks
        are ``apart``, those after it are not tried.
        """
        found, before = {}, np.arange(draft.program.num_blocks)
        for strategy in STRATEGIES[1:]:
            pairs = self._pairs(draft, draft.prompt, strategy)
            if (pairs.host == before).all() or not _is_promising(draft.program, draft.prompt, pairs):
                continue
            before = pairs.host
            joined = self._build(draft, draft.prompt, pairs)
            if joined is not None:
                found[strategy] = joined
                if apart is not None and joined.measures().time > _HOPELESS * apart.measures().time:
                    return found
        if self.turns and self.fused and ((draft.program.send_peer < 0) & (draft.program.recv_peer < 0)).any():
            joined = self._build(draft, draft.prompt, self._pairs(draft, draft.prompt, _COPIES_APART))
            found |= {} if joined is None else {_COPIES_APART: joined}
        return found

    def _with_more_relays(self, draft: _Draft, name: str, chosen: _Joined) -> _Joined:
        """Return the program of a strategy with more fused relays, if that is worse in nothing.

        With ``turns``, it may be hardly slower.
        """
        gained = len(draft.through[0]) - len(draft.prompt[0])
        if gained * _GAIN <= draft.program.num_instructions:
            return chosen
        strategy = "flow" if name == "apart" else name
        pairings = (draft.through, draft.prompt) if self.turns else (draft.through,)
        built = [self._build(draft, draft.through, self._pairs(draft, flow, strategy)) for flow in pairings]
        others = [one for one in built if one is not None]
        if self.turns:
            return self._shortest([chosen, *others])
        return next((one for one in others if _is_better(one.measures(), chosen.measures())), chosen)

    def _best(self, candidates: dict[str, _Joined]) -> str:
        """Return the name of the fastest program, or of one with fewer threadblocks that is hardly slower."""
        name, why = self._chosen({name: one.measures() for name, one in candidates.items()})
        remark(why)
        return name

    def _chosen(self, found: dict[str, _Measures]) -> tuple[str, str]:
        """Return the name of the best program by its measures, and the reason in words."""
        names, measured = list(found), list(found.values())
        # Without fused instructions, the steps are known only after `unfuse`.
        known = slice(None if self.fused else 2)
        chosen = names[min(_hardly_slower(measured, self._margin), key=lambda k: measured[k].by_threadblocks[known])]
        least = min(one.time for one in measured)
        listed = ", ".join(
            f"{name} (threadblocks {one.threadblocks}, time {one.time / max(least, 1):.2f})"
            for name, one in found.items()
        )
        return chosen, f"fuse: strategy {chosen} of: {listed}"

    def _with_measures(self, program: Program, members: tuple[list[int], ...], fused: Array) -> _Joined:
        return _Joined(program, members, fused, cache(lambda: self._measures(program)))

    def _measures(self, program: Program) -> _Measures:
        length = steps(program, self.fused)
        blocks = int(np.diff(program.rank_blocks).max(initial=0))
        return _Measures(
            blocks, self._time(program), int(length.max(initial=0)), int(length.sum()), program.num_channels
        )

    def _time(self, program: Program) -> int:
        """Return how long the runtime takes, with fused instructions only if it has them."""
        unit = self._unit(program)
        if not self.fused:
            plain = Unfuse().run(program)
            assert isinstance(plain, Program), "a program of all ranks stays one"
            return duration(plain, _START, unit, self._depth if completes_with(plain, self._depth) else None) or 0
        return duration(program, _START, unit, self._depth) or 0

    def _unit(self, program: Program) -> int:
        size = self.size or program.collective.size or _SIZE
        return max(size // max(program.chunks * program.collective.num_shards, 1), 1)

    @property
    def _margin(self) -> int:
        # Without fused instructions, a joined threadblock also executes what replaces them.
        return _BY_HAND if self.turns and self.fused else _MARGIN

    @property
    def _depth(self) -> int:
        return 2 if self.fifo_depth is None else self.fifo_depth

    def _pairs(self, draft: _Draft, flow: tuple[Array, Array], strategy: str) -> Pairs:
        program, times = draft.program, draft.times if self.turns else None
        few, copies = strategy in ("few", _COPIES_APART), strategy != _COPIES_APART
        return pair_blocks(program, flow, few, steps(program, self.fused), self.max_steps, self.fused, times, copies)

    def _build(self, draft: _Draft, flow: tuple[Array, Array], pairs: Pairs) -> _Joined | None:
        """Return the program with blocks joined, or None if limits or FIFOs do not allow it.

        With ``turns``, it is the better of two: connections move chunks one by one, or as many as a file may take as
        one.
        """
        splits = sorted({1, granule(draft.program)} if self.turns else {1})
        found = [self._joined(draft, flow, pairs, split) for split in splits]
        built = [one for one in found if one is not None]
        if len(built) < 2:
            return built[0] if built else None
        return self._shortest(built)

    def _shortest(self, programs: list[_Joined]) -> _Joined:
        """Return the program with fewest threadblocks, then steps, of those that are at most 1/_STEPS slower."""
        found = [one.measures() for one in programs]
        key = {k: (found[k].threadblocks, found[k].steps, found[k].time) for k in _hardly_slower(found, _STEPS)}
        return programs[min(key, key=key.__getitem__)]

    def _joined(self, draft: _Draft, flow: tuple[Array, Array], pairs: Pairs, split: int) -> _Joined | None:
        ir, depth = draft.program, self._depth * split
        due = None if self.turns else draft.times.due
        for turn in range(_ROUNDS):
            progress("joining threadblocks, round", turn + 1)
            if self.max_channels is not None and int(pairs.channel.max(initial=0)) >= self.max_channels:
                return None
            follow = followed(ir, flow, pairs)
            merged = merge(ir, due, lambda: draft.place, draft.clashes, follow, pairs.host, depth)
            if merged is None:
                return None
            program, members = assemble(ir, merged, pairs)
            deadlock = None
            if not completes_with(program, self._depth, split):
                deadlock = execute(program, self._depth, split).deadlock
            wrong = [b for b in self._wrongly_joined(program, deadlock) if len(members[b]) > 1]
            if not wrong:
                fused = np.flatnonzero(merged.follow >= 0)
                return None if deadlock else self._with_measures(program, tuple(members), fused)
            host = pairs.host.copy()
            for b in wrong:
                host[members[b]] = members[b]
            pairs = attrs.evolve(pairs, host=host)
        return None

    def _wrongly_joined(self, program: Program, deadlock: Deadlock | None) -> list[int]:
        """Return the blocks that have too many steps or wait in a deadlock."""
        wrong = [] if self.max_steps is None else np.flatnonzero(steps(program, self.fused) > self.max_steps).tolist()
        if deadlock is not None:
            wrong += [int(program.block[w.instruction]) for w in deadlock.cycle or deadlock.waits]
        return sorted(set(wrong))


def _is_better(one: _Measures, other: _Measures) -> bool:
    """Return whether a program is better than another in something, and worse in nothing."""
    return one != other and one.is_no_worse(other)


def _hardly_slower(measured: list[_Measures], margin: int) -> list[int]:
    """Return which programs take at most 1/``margin`` more time than the fastest."""
    least = min(one.time for one in measured)
    return [k for k, one in enumerate(measured) if one.time * margin <= least * (margin + 1)]


def _with_single_copies(program: Program) -> Program:
    """Return the program with a block for each instruction of blocks without peers, so that each can join another."""
    alone = ((program.send_peer < 0) & (program.recv_peer < 0))[program.block]
    if not (alone & (program.step > 0)).any() or not np.diff(program.block_start.astype(np.int64)).all():
        return program
    fresh = alone | (program.step == 0)
    blocks = {c: getattr(program, c)[program.block[fresh]] for c in BLOCK_COLUMNS}
    return reblock(program, sequential_order(program), blocks, np.cumsum(fresh) - 1)


def _clashes(program: Program, times: Times, finished: Callable[[], Array]) -> tuple[Array, Array]:
    """Return the conflicts of the program in the order of turns.

    They are those of another order if that order agrees with the times; if several instructions have their turn at one
    time, the order of turns itself decides.
    """
    known = known_conflicts(program)
    return known if agree(times.due, *known) else conflicts(program, times.places(finished()))


def _with_results_last(program: Program, place: Array, clashes: tuple[Array, Array]) -> Array:
    """Return the order in which local instructions come last that no other instruction waits for."""
    is_last = program.local.copy()
    is_last[clashes[1]] = False
    return inverse(lexsort((place, is_last)))


def _is_promising(program: Program, flow: tuple[Array, Array], pairs: Pairs) -> bool:
    """Return whether pairs reduce the most threadblocks of a rank, or fuse an eighth of the instructions."""
    kept = np.bincount(program.block_rank[pairs.host == np.arange(len(pairs.host))], minlength=program.num_ranks)
    fewer = int(kept.max(initial=0)) < int(np.diff(program.rank_blocks).max(initial=0))
    fused = int((followed(program, flow, pairs) >= 0).sum())
    return fewer or fused * _MARGIN > program.num_instructions
