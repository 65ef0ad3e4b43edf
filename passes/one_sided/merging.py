"""Fewer operations for the same data, in one block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from collc.ir.arrays import Array, lexsort
from collc.ir.frozen import frozen
from collc.ir.one_sided.opcodes import Op, table
from collc.ir.one_sided.program import Transport
from collc.ir.ragged import first_of_group

from .rows import OPCODE, TRANSPORT, Rows
from .steps import Piece, Step

__all__ = ["Limits", "forwarded", "joined_links", "merged"]

_SUMS = {Op.RE: Op.RES, Op.RES: Op.RES, Op.REPKT: Op.RESPKT, Op.RESPKT: Op.RESPKT}
_PUTS = {Op.RE: Op.PUT, Op.RES: Op.PUT, Op.REPKT: Op.PPKT, Op.RESPKT: Op.PPKT}
_JOINED = (Op.WAIT, Op.SIGNAL, Op.SEM_ACQUIRE, Op.SEM_RELEASE)
_JOINS = table(*_JOINED)
_READS_PACKETS = (Op.UPKT, Op.RPPKT, Op.REPKT, Op.RESPKT, Op.RECPKT, Op.RECSPKT)


@frozen
class Limits:
    """The most channels of an operation, and the most sources or destinations.

    If ``whole``, operations read messages as a whole: a part does not prove that a port has sent the rest.
    """

    links: int
    items: int
    whole: bool = False


def merged(steps: Sequence[Step], limits: Limits) -> list[Step]:
    """Return operations that do the same as these in fewer: those between two synchronizing ones join.

    Data operations of one stretch have no signal or wait between them. What moves within it passes no operation that
    accesses the same chunks.
    """
    found: list[Step] = []
    for stretch in _stretches(steps):
        if stretch[0].synchronizes:
            found += _joined_links(stretch, limits)
        else:
            found += _joined_data(stretch, limits)
    return found


def joined_links(rows: Rows, stretch: Array, most: int) -> tuple[Rows, Array]:
    """Return the operations with neighbours joined as :func:`merged` joins those that synchronize.

    They are of one stretch, kind and transport. All operations of a run become one if their channels are distinct, and
    at most ``most``; other runs are left to :func:`merged`. Also return which operation each was, the first of its run.
    """
    opcode = rows.fixed[:, OPCODE]
    alike = first_of_group(stretch) | first_of_group(opcode) | first_of_group(rows.fixed[:, TRANSPORT])
    run = np.cumsum(alike | ~_JOINS[opcode]) - 1
    first = np.flatnonzero(first_of_group(run))
    links = np.bincount(run, weights=rows.link_count, minlength=len(first)).astype(np.int64)
    of = np.repeat(run, rows.link_count)
    order = lexsort((rows.links, of))
    again = (of[order][1:] == of[order][:-1]) & (rows.links[order][1:] == rows.links[order][:-1])
    joins = (np.bincount(run, minlength=len(first)) > 1) & (links <= most)
    joins[of[order][1:][again]] = False
    kept = ~joins[run]
    kept[first] = True
    rest = np.flatnonzero(kept)
    count = np.where(joins[run[rest]], links[run[rest]], rows.link_count[rest])
    ordered = np.where(joins[of], rows.links[order], rows.links)
    return attrs.evolve(rows.take(rest), link_count=count, links=ordered), rest


def _stretches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the longest runs of operations of one step that all synchronize, or none of which does."""
    run: list[Step] = []
    for one in steps:
        if run and (one.synchronizes != run[-1].synchronizes or one.depth != run[-1].depth):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _joined_links(stretch: list[Step], limits: Limits) -> list[Step]:
    """Join neighbouring operations of one kind; a channel stands only once in an operation."""
    found: list[Step] = []
    for one in stretch:
        last = found[-1] if found else None
        if (
            last is not None and last.op is one.op and one.op in _JOINED and last.transport == one.transport
            and len(last.links) + len(one.links) <= limits.links and not set(last.links) & set(one.links)
        ):  # fmt: skip
            last.links = sorted(last.links + one.links)
        else:
            found.append(one)
    return found


def _joined_data(stretch: list[Step], limits: Limits) -> list[Step]:
    if len(stretch) > 1:
        stretch = forwarded(stretch, limits.whole)
        stretch = _summed(stretch, limits)
        stretch = _sent(stretch, limits)
        stretch = _put(stretch, limits)
    return stretch


def forwarded(steps: list[Step], whole: bool) -> list[Step]:
    """Send packets on, and add them, from where they landed, not from where they were unpacked.

    They stay there until the end of the launch.
    """
    unpacked: list[Step] = []
    found: list[Step] = []
    packed: dict[Piece, Piece] = {}
    for one in steps:
        if one.op is Op.CPKT and (slot := _slot(unpacked, one.src[0], whole)) is not None:
            packed[one.dst[0]] = slot
            continue
        _read_slots(one, unpacked, packed, whole)
        unpacked = [u for u in unpacked if not one.writes(u.dst)]
        if one.op is Op.UPKT:
            unpacked.append(one)
        found.append(one)
    return found


def _read_slots(one: Step, unpacked: list[Step], packed: dict[Piece, Piece], whole: bool) -> None:
    """Let an operation read packets where they landed, if it reads what was unpacked, or packed again."""
    if one.op is Op.RPPKT:
        one.src = [packed.get(piece, piece) for piece in one.src]
    elif one.op is Op.PPKT and len(one.src) == 1:
        slot = _slot(unpacked, one.src[0], whole)
        if slot is not None:
            one.src = [slot]
            one.become(Op.RPPKT)
    elif one.op is Op.RE:
        slots = [_slot(unpacked, source, whole) for source in one.src]
        if slots.count(None) == 1:
            plain = one.src[slots.index(None)]
            one.src = [plain, *(slot for slot in slots if slot is not None)]
            one.become(Op.REPKT)


def _slot(unpacked: list[Step], source: Piece, whole: bool) -> Piece | None:
    """Return the packets from which a place was unpacked; None if it was not, or if it is only a part of ``whole``."""
    for one in unpacked:
        target, slot = one.dst[0], one.src[0]
        if whole and target != source:
            continue
        if target.overlaps(source) and target.low <= source.low and source.high <= target.high:
            by = slot.low - target.low
            return slot._replace(low=source.low + by, high=source.high + by)
    return None


def _summed(stretch: list[Step], limits: Limits) -> list[Step]:
    """Let one sum have all sources, where sums add to one place one after the other."""
    dropped: set[int] = set()
    for k, one in enumerate(stretch):
        if one.op not in (Op.RE, Op.REPKT) or len(one.dst) != 1 or one.dst[0] not in one.src:
            continue
        before = _last_touching(stretch, k, one.dst, dropped)
        if before is None:
            continue
        other, rest = stretch[before], [piece for piece in one.src if piece != one.dst[0]]
        if (
            other.op is one.op and other.dst == one.dst and len(rest) + 1 == len(one.src)
            and len(other.src) + len(rest) <= limits.items
            and not any(stretch[j].writes(other.src) for j in range(before + 1, k) if j not in dropped)
            and (one.op is Op.RE or one.src[0] == one.dst[0])
        ):  # fmt: skip
            one.src = [*other.src, *rest]
            dropped.add(before)
    return [one for k, one in enumerate(stretch) if k not in dropped]


def _last_touching(stretch: list[Step], k: int, pieces: list[Piece], dropped: set[int]) -> int | None:
    return next((j for j in range(k - 1, -1, -1) if j not in dropped and stretch[j].touches(pieces)), None)


def _sent(stretch: list[Step], limits: Limits) -> list[Step]:
    """Let sums write to peers what a put would read again."""
    found: list[Step] = []
    for one in stretch:
        if one.op in (Op.PUT, Op.PPKT) and one.transport == Transport.MEMORY:
            left = [pair for pair in zip(one.src, one.dst, strict=True) if not _given(found, one, pair, limits)]
            if not left:
                continue
            one.src, one.dst = [source for source, _ in left], [target for _, target in left]
        found.append(one)
    return found


def _given(found: list[Step], put: Step, pair: tuple[Piece, Piece], limits: Limits) -> bool:
    """Let the sums that wrote the source of a put write its target too; return whether they do."""
    source, target = pair
    parts: list[tuple[Step, Piece]] = []
    for one in reversed(found):
        if one.touches([target]):
            return False
        stored = one.dst[0] if one.dst else None
        if stored is not None and one.op in _SUMS and stored.overlaps(source):
            if _PUTS[one.op] is not put.op or stored.low < source.low or stored.high > source.high:
                return False
            if len(one.dst) >= limits.items:
                return False
            parts.append((one, stored))
            if sum(piece.high - piece.low for _, piece in parts) == source.high - source.low:
                break
        elif one.writes([source]):
            return False
    else:
        return False
    if len({piece for _, piece in parts}) < len(parts):
        return False
    for one, piece in parts:
        low = target.low + piece.low - source.low
        one.dst.append(target._replace(low=low, high=low + piece.high - piece.low))
        one.become(_SUMS[one.op])
        one.fixed = [*one.fixed[:2], put.fixed[2], *one.fixed[3:]]
    return True


def _put(stretch: list[Step], limits: Limits) -> list[Step]:
    """Let one put write to several peers; the executor takes one buffer for all sources."""
    found: list[Step] = []
    last: dict[tuple[object, ...], int] = {}
    for one in stretch:
        kind = _kind(one)
        host = last.get(kind, -1) if kind else -1
        if host >= 0 and _fits(found[host], one, limits) and not _in_the_way(found[host + 1 :], one):
            if one.op is not Op.RPPKT:
                found[host].src.extend(one.src)
            found[host].dst.extend(one.dst)
        else:
            if kind:
                last[kind] = len(found)
            found.append(one)
    return found


def _kind(one: Step) -> tuple[object, ...]:
    """Return what operations must have in common that can become one; empty if it can join none."""
    if one.transport != Transport.MEMORY or one.op not in (Op.PUT, Op.PPKT, Op.RPPKT):
        return ()
    return one.op, *(one.src if one.op is Op.RPPKT else one.src[0][:2])


def _fits(host: Step, one: Step, limits: Limits) -> bool:
    return len(host.dst) + len(one.dst) <= limits.items


def _in_the_way(between: list[Step], one: Step) -> bool:
    """Return whether an operation may not move before some others."""
    return any(other.writes(one.src) or other.touches(one.dst) for other in between)
