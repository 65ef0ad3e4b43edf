"""The rules of a plan that need no execution: numbers that name something, operations that exist, operands in place.

The executor checks few of them: a wrong number writes past an array or mixes two blocks (notes, 2 and 5.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from collc.ir.diagnostic import nearest
from collc.ir.one_sided.opcodes import Op
from collc.ir.shown import clipped

from ..msccl_xml.findings import Finding
from .forms import FORMS, Form
from .kinds import Kinds
from .model import BUFFERS, KINDS, LINKED, LL, LOOP, MISSING, OPS, SIMPLE, Block, Gpu, Plan, PlanItem, PlanOp
from .runtimes import MAX_LINKS, MAX_THREADS, RUNTIMES, Runtime
from .sound import are_sound

__all__ = ["CHECKS", "broken_rules"]

#: name of a check -> what it says if it passed
CHECKS = {
    "numbering": "ranks and threadblocks have their positions as numbers",
    "references": "every number names something",
    "operations": "every operation has its operands, over a transport that has it",
    "chunks": "all ranks have the same chunks, of one size",
}

_Findings = Iterator[Finding]


def broken_rules(plan: Plan, runtime: Runtime | None = None, kinds: Kinds | None = None) -> list[Finding]:
    """Return what is wrong with a plan for one version of the runtime, or for all; a ``fatal`` one has no program.

    ``kinds`` are those of the plan, if they are known.
    """
    sound = are_sound(plan, kinds or Kinds(plan), runtime)
    ranks = (finding for gpu in plan.gpus for finding in _rank(plan, gpu, runtime, sound))
    return [*_head(plan), *_numbering(plan), *_chunks(plan), *ranks, *_groups(plan)]


def _head(plan: Plan) -> _Findings:
    if plan.protocol not in (SIMPLE, LL):
        found = f"found protocol `{clipped(plan.protocol)}`, needed {SIMPLE} or {LL}"
        yield Finding("operations", "C0666", found, nearest(plan.protocol, (SIMPLE, LL)))
    if not 1 <= plan.threads <= MAX_THREADS:
        found = f"found {plan.threads} threads of a block, needed 1 to {MAX_THREADS}"
        yield Finding("operations", "C0666", found, fatal=True)
    if plan.alignment < 1:
        found = f"found `buffer_alignment` {plan.alignment}: the executor divides by it"
        yield Finding("chunks", "C0682", found, "use 16", fatal=True)
    if plan.min_bytes > plan.max_bytes:
        found = f"its smallest call has {plan.min_bytes} bytes, its largest {plan.max_bytes}: no call uses it"
        yield Finding("chunks", "C0674", found)


def _numbering(plan: Plan) -> _Findings:
    for position, gpu in enumerate(plan.gpus):
        if gpu.id != position:
            yield Finding("numbering", "C0664", f"rank {gpu.id} stands at position {position} of `gpus`", fatal=True)
        for number, block in enumerate(gpu.blocks):
            if block.id != number:
                found = f"rank {gpu.id}: block {block.id} stands at position {number}, so its channels are another's"
                yield Finding("numbering", "C0664", found, fatal=True)


# ---- chunks


def _chunks(plan: Plan) -> _Findings:
    first = plan.gpus[0]
    for gpu in plan.gpus:
        for what, count in (("input", gpu.input), ("output", gpu.output)):
            if count < 1:
                found = f"rank {gpu.id} has 0 {what} chunks: the executor divides by them"
                yield Finding("chunks", "C0667", found, f"use 1 or more `{what}_chunks`", fatal=True)
        if (gpu.input, gpu.output) != (first.input, first.output):
            found = f"rank {gpu.id} has {gpu.input} input and {gpu.output} output chunks, rank {first.id} has"
            found = f"{found} {first.input} and {first.output}: their chunks differ in size"
            yield Finding("chunks", "C0667", found, fatal=True)
    due = _shares(plan)
    if due and first.input * due[1] != first.output * due[0]:
        found = f"{plan.collective} on {len(plan.gpus)} ranks with {first.input} input and {first.output} output chunks"
        need = f"needed {due[0]} to {due[1]}" if due[0] != due[1] else "needed as many of both"
        yield Finding("chunks", "C0667", f"{found}: chunks of the two differ in size, {need}", fatal=True)


def _shares(plan: Plan) -> tuple[int, int] | None:
    """Return how much input and output a rank has, in shares; None if the collective does not say."""
    ranks = len(plan.gpus)
    return {
        "allgather": (1, ranks), "gather": (1, ranks), "reduce-scatter": (ranks, 1), "scatter": (ranks, 1),
        "allreduce": (1, 1), "alltoall": (1, 1), "broadcast": (1, 1), "reduce": (1, 1),
    }.get(KINDS.get(plan.collective, ""))  # fmt: skip


# ---- ranks and blocks


def _rank(plan: Plan, gpu: Gpu, runtime: Runtime | None, sound: bool) -> _Findings:
    ranks, counts = len(plan.gpus), _channel_counts(gpu)
    for channel in gpu.channels:
        for peer in channel.peers:
            if peer >= ranks or peer == gpu.id:
                found = f"rank {gpu.id} has a channel to rank {peer}, needed another rank below {ranks}"
                yield Finding("references", "C0665", found, fatal=True)
        for group in channel.groups:
            if any(one >= ranks for one in group) or gpu.id not in group or len(set(group)) != len(group):
                found = f"rank {gpu.id} has a switch channel of the ranks {_listed(group)}"
                yield Finding("references", "C0665", f"{found}, needed it and others, each once", fatal=True)
    for number, buffer in enumerate(gpu.buffers):
        if buffer.rank >= ranks:
            found = f"rank {gpu.id}: remote buffer {number} is of rank {buffer.rank}, needed a rank below {ranks}"
            yield Finding("references", "C0665", found, fatal=True)
    for block in gpu.blocks if not sound else ():
        yield from _block(gpu, block, counts, runtime)


def _groups(plan: Plan) -> _Findings:
    """Yield the switch channels that no rank gets: the executor sets up one after the other, with all ranks of each."""
    rest = {gpu.id: [(group, c.letter) for c in gpu.channels for group in c.groups][::-1] for gpu in plan.gpus}
    ready = [rank for rank, channels in rest.items() if channels]
    while ready:
        channels = rest[ready.pop()]
        members = [rest.get(one, []) for one in channels[-1][0]] if channels else []
        if members and all(other and other[-1] == channels[-1] for other in members):
            ready.extend(channels.pop()[0])
            for other in members:
                if other is not channels:
                    other.pop()
    for rank, channels in rest.items():
        if channels:
            group, letter = channels[-1]
            absent = next(one for one in group if rest.get(one, [])[-1:] != channels[-1:])
            found = f"rank {rank} waits for its channel of a switch to buffer `{letter}` of ranks {_listed(group)}"
            hint = "list a channel of the same ranks and buffer at all of them, in one order"
            yield Finding("references", "C0694", f"{found}, which rank {absent} does not set up then", hint)
            return


def _listed(ranks: tuple[int, ...]) -> str:
    return clipped(", ".join(map(str, ranks)))


def _channel_counts(gpu: Gpu) -> dict[str, int]:
    counts = {"memory": 0, "port": 0, "switch": 0}
    for channel in gpu.channels:
        counts[channel.transport] += len(channel.peers) + len(channel.groups)
    return counts


def _block(gpu: Gpu, block: Block, counts: dict[str, int], runtime: Runtime | None) -> _Findings:
    where = f"rank {gpu.id}, block {block.id}"
    for transport, ids in block.channels:
        for one in ids:
            if one >= counts[transport]:
                found = f"{where} has {transport} channel {one}, but the rank has {counts[transport]}"
                yield Finding("references", "C0665", found, fatal=True)
    for transport, ids in block.buffers:
        for one in ids:
            if one >= len(gpu.buffers) or transport not in gpu.buffers[one].transports:
                reason = f"the rank has {len(gpu.buffers)}"
                reason = f"{transport} does not reach it" if one < len(gpu.buffers) else reason
                found = f"{where} has remote buffer {one} by {transport}, but {reason}"
                yield Finding("references", "C0665", found, fatal=True)
    reach = {name: (len(block.linked(name)), len(block.reached(name))) for name in counts}
    for transport, lengths in reach.items():
        for what, length in zip(("channels", "remote buffers"), lengths, strict=True):
            if length > MAX_LINKS:
                found = f"{where} lists {length} {what} by {transport}, used or not, the executor takes {MAX_LINKS}"
                yield Finding("references", "C0670", found)
    judge = _Judge(where, reach, len(gpu.semaphores), runtime)
    for step, op in enumerate(_flat(block.ops)):
        yield from judge(step, op)


def _flat(ops: tuple[PlanOp, ...]) -> Iterator[PlanOp]:
    for op in ops:
        if op.name == LOOP:
            yield from op.inner
        else:
            yield op


# ---- operations


class _Judge:
    """Judges the operations of one block."""

    def __init__(self, where: str, reach: dict[str, tuple[int, int]], semaphores: int, runtime: Runtime | None):
        self.where, self.reach, self.semaphores, self.runtime = where, reach, semaphores, runtime

    def __call__(self, step: int, op: PlanOp) -> _Findings:
        if op.name == "nop":
            return
        where = f"{self.where}, operation {step} ({clipped(op.name)})"
        code = OPS.get(op.name)
        if code is None:
            yield Finding("operations", "C0668", f"{where}: {_unknown(op.name)}", fatal=True)
            return
        if self.runtime is not None and code in self.runtime.lacks:
            yield Finding("operations", "C0668", f"{where}: {self.runtime.title} lacks it", _newer(code))
        yield from self.references(where, op)
        yield from _formed(where, code, op)
        if op.adds != "sum":
            found = f"{where}: it is to compute `{clipped(op.adds)}`, but the executor adds whatever a plan says"
            yield Finding("operations", "C0677", found)

    def references(self, where: str, op: PlanOp) -> _Findings:
        """Find channels, remote buffers and semaphores that the block or the rank does not have."""
        channels, buffers = self.reach.get(op.transport, (0, 0))
        kind = op.transport or "no type of"
        for one in op.channels:
            if one >= channels:
                found = f"{where} names channel {one}, but the block has {channels} of {kind} channels"
                yield Finding("references", "C0665", found, fatal=True)
        for one in op.semaphores:
            if one >= self.semaphores:
                found = f"{where} names semaphore {one}, but the rank has {self.semaphores}"
                yield Finding("references", "C0665", found, fatal=True)
        for item in (*op.src, *op.dst):
            if item.remote >= buffers and item.remote != MISSING:
                found = f"{where} names remote buffer {item.remote}, but the block has {buffers} by {kind} channels"
                yield Finding("references", "C0665", found, fatal=True)
            if item.switch != MISSING and item.switch >= self.reach["switch"][0]:
                found = f"{where} names switch channel {item.switch}, but the block has {self.reach['switch'][0]}"
                yield Finding("references", "C0665", found, fatal=True)


def _unknown(name: str) -> str:
    if name == "glre":
        return "the DSL prints it, but no executor has it"
    hint = nearest(name, OPS)
    return f"no executor has it{f'; {hint}' if hint else ''}"


def _newer(op: Op) -> str:
    able = next(one for one in RUNTIMES.values() if op not in one.lacks)
    return f"use runtime `{able.name}`"


def _formed(where: str, code: Op, op: PlanOp) -> _Findings:
    form = FORMS[code]
    if op.transport not in form.transports:
        if code is Op.PPKT and op.transport == "port" and _sends_packets(op):
            found = f"{where}: {_OTHERWISE[code, 'port']}"
            yield Finding("operations", "C0680", found, mild=True)
            return
        effect = _OTHERWISE.get((code, op.transport), "the executor has no other form")
        due = " or ".join(form.transports)
        found = f"{where}: it works over {due} channels, found {op.transport or 'none'}: {effect}"
        yield Finding("operations", "C0680", found, fatal=True)
        return
    wrong = next(_misformed(code, form, op), "")
    if wrong:
        yield Finding("operations", "C0666", f"{where}: {wrong}", fatal=True)


def _sends_packets(op: PlanOp) -> bool:
    """Return whether a put of packets over a port sends packets that are in scratch already, as `rppkt` does."""
    pair = len(op.src) == len(op.dst) == len(op.channels) == 1
    return pair and op.src[0].letter == "s" and op.dst[0].remote != MISSING and op.src[0].size == op.dst[0].size > 0


#: what the executor does with an operation over a transport that does not have it (notes, 5)
_OTHERWISE = {
    (Op.PWS, "memory"): "over memory it puts and never signals",
    (Op.PWSF, "memory"): "over memory it puts and never signals",
    (Op.PPKT, "port"): "over a port it takes its buffer from the first plan of the process; use cpkt and rppkt",
}


def _misformed(code: Op, form: Form, op: PlanOp) -> Iterator[str]:
    """Yield why an operation does not have the form of its name."""
    for side, items, first, more in (("source", op.src, form.src, form.more_src),
                                     ("destination", op.dst, form.dst, form.more_dst)):  # fmt: skip
        if len(items) < len(first) or (len(items) > len(first) and not more):
            least = f"at least {len(first)}" if more else str(len(first))
            yield f"found {len(items)} {side}s, needed {least}"
        for number, item in enumerate(items):
            due = first[number] if number < len(first) else more
            if _where(item) != due:
                yield f"{side} {number} is {_PLACES[_where(item)]}, needed {_PLACES.get(due, 'none')}"
    if form.pairs and len(op.src) != len(op.dst):
        yield f"found {len(op.src)} sources and {len(op.dst)} destinations, needed pairs"
    if form.ids and not op.channels:
        yield "it names no channel"
    if code in LINKED and op.transport == "port" and len(op.channels) != len(op.dst):
        yield f"found {len(op.channels)} channels and {len(op.dst)} destinations, needed as many"
    if code in (Op.SEM_ACQUIRE, Op.SEM_RELEASE) and not op.semaphores:
        yield "it names no semaphore"
    if code is Op.BARRIER and op.blocks < 1:
        yield "it joins no threadblocks"
    yield from _sizes(form, op)


def _sizes(form: Form, op: PlanOp) -> Iterator[str]:
    items = (*op.src, *op.dst)
    if any(item.size < 1 for item in items):
        yield "an item has no chunks"
    if form.pairs:
        different = any(one.size != other.size for one, other in zip(op.src, op.dst, strict=False))
    else:
        different = len({item.size for item in items}) > 1
    if different:
        yield "its items differ in size"


_PLACES = {"here": "a local buffer", "peer": "a remote buffer", "switch": "behind a switch"}


def _where(item: PlanItem) -> str:
    return "here" if item.letter in BUFFERS else "peer" if item.remote != MISSING else "switch"
