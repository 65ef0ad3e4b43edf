"""The figures of docs/explanation: drawn from what collc computes, so that they show real schedules and costs.

    python benchmarks/explained.py [--only NAME ..] [-o docs/explanation]

Each picture is 800 wide. Kinds of lines differ in dashes and width, so that grey shows them too; the page's colors are
light or dark as the reader's screen is.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

import collc
from collc.backends.pictures.axes import Axis
from collc.backends.pictures.charts import Chart, Series
from collc.backends.pictures.style import look
from collc.backends.pictures.svg import Element, Picture, circle, line, path, rectangle, text
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.opcodes import Opcode
from collc.ir.program import Program
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.passes.synthesis.exact.scheduler import pareto
from collc.passes.synthesis.torus.peers import doubling_peers, swing_peers
from collc.passes.synthesis.two_tier.rounds import box_rounds

Point = tuple[float, float]

WIDTH = 800
_NODE = 15.0
_HEAD = 64


def explained(name: str, title: str, under: str, height: float, body: Sequence[Element]) -> Picture:
    """Return a picture with its title, and a sentence below the title."""
    head = (text(20, 26, title, "title"), text(20, 46, under))
    return Picture(WIDTH, height, title, f"{name}: {under}", (*head, *body))


def node(at: Point, label: str, kind: str = "ring ink", radius: float = _NODE) -> Iterator[Element]:
    """Draw a node with its label inside."""
    yield circle(*at, radius, "paper")
    yield circle(*at, radius, kind)
    yield text(at[0], at[1] + 4, label, anchor="middle")


def box(at: Point, width: float, height: float, kind: str = "ring ink") -> Iterator[Element]:
    """Draw an empty rectangle by its upper left corner."""
    yield rectangle(*at, width, height, "paper")
    yield rectangle(*at, width, height, kind)


def arrow(start: Point, end: Point, kind: str = "ink", dash: str = "", gap: float = _NODE) -> Iterator[Element]:
    """Draw an arrow between two nodes, from rim to rim."""
    long = math.dist(start, end)
    along = ((end[0] - start[0]) / long, (end[1] - start[1]) / long)
    first = (start[0] + along[0] * gap, start[1] + along[1] * gap)
    last = (end[0] - along[0] * (gap + 2), end[1] - along[1] * (gap + 2))
    neck = (last[0] - along[0] * 9, last[1] - along[1] * 9)
    side = (-along[1] * 4.5, along[0] * 4.5)
    yield line(*first, *neck, f"line {kind}", dash)
    tip = [last, (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])]
    yield path(tip, f"fill {kind}", close=True)


def arc(start: Point, end: Point, height: float, kind: str, dash: str = "") -> Iterator[Element]:
    """Draw half an ellipse above (or with a negative height below) two points of one line, as an arrow."""
    turns = [math.pi * i / 24 for i in range(25)]
    middle, half = (start[0] + end[0]) / 2, (start[0] - end[0]) / 2
    points = [(middle + half * math.cos(t), start[1] - height * math.sin(t)) for t in turns]
    yield path(points[:-1], f"line {kind}", dash)
    yield from arrow(points[-3], points[-1], kind, gap=0)


def rows_of(schedule: Schedule, shard: int) -> list[tuple[int, int, int, Fraction]]:
    """Return (step, sender, receiver, part) of all transfers of a shard."""
    columns = (schedule.step, schedule.src, schedule.dst, schedule.lo, schedule.hi, schedule.shard)
    return [
        (int(step), int(src), int(dst), Fraction(int(hi - lo), schedule.parts))
        for step, src, dst, lo, hi, owner in zip(*columns, strict=True)
        if owner == shard
    ]


def compiled(source: str) -> collc.Result:
    """Return what a text compiles to."""
    return collc.compile_source(source)


# ---- the figures


def bfb() -> Picture:
    """Draw the shard of rank 0 on its way through a cube, step by step, with the part that each link carries."""
    rows = rows_of(compiled("collective c = allgather on hypercube(3); schedule c using bfb;").schedule, 0)
    body: list[Element] = []
    for step in range(3):
        left = 30 + step * 257
        at = [(left + 38 + 110 * (r & 1) + 62 * (r >> 2), 262 - 108 * (r >> 1 & 1) - 44 * (r >> 2)) for r in range(8)]
        reached = {0} | {dst for when, _, dst, _ in rows if when < step}
        body += [line(*at[a], *at[a ^ b], "grid") for a in range(8) for b in (1, 2, 4) if not a & b]
        for when, src, dst, part in rows:
            if when == step:
                body += arrow(at[src], at[dst], "c0")
                slanted = abs(src - dst) == 4
                share = 0.5 if slanted else 0.36
                middle = [a + share * (b - a) for a, b in zip(at[src], at[dst], strict=True)]
                body += [text(middle[0] - (16 if slanted else -5), middle[1] - (8 if slanted else 6), str(part))]
        for rank in range(8):
            body += [circle(*at[rank], _NODE + 4, "ring c0")] if rank in reached else []
            body += node(at[rank], str(rank))
        body += [text(left + 108, 318, f"step {step + 1}", anchor="middle")]
    under = "A double ring marks a rank that has the shard. A number is the part of the shard that a link carries."
    return explained("bfb", "The shard of rank 0 on its way through a cube", under, 336, body)


def around(center: Point, radius: float, names: Sequence[str], links: Sequence[tuple[int, int]]) -> Iterator[Element]:
    """Draw a small digraph on a circle."""
    turns = [2 * math.pi * i / len(names) - math.pi / 2 for i in range(len(names))]
    at = [(center[0] + radius * math.cos(t), center[1] + radius * math.sin(t)) for t in turns]
    two_way = {(a, b) for a, b in links if (b, a) in links}
    for a, b in links:
        shift = 4 if (a, b) in two_way else 0
        along = math.dist(at[a], at[b])
        side = (-(at[b][1] - at[a][1]) / along * shift, (at[b][0] - at[a][0]) / along * shift)
        start, end = ((p[0] + side[0], p[1] + side[1]) for p in (at[a], at[b]))
        yield from arrow(start, end, "c0")
    for place, name in zip(at, names, strict=True):
        yield from node(place, name)


def expansion() -> Picture:
    """Draw a digraph and its line graph."""
    base = collc.topology("complete_bipartite(2)")
    links = list(zip(base.src.tolist(), base.dst.tolist(), strict=True))
    letters = "abcd"
    lined = collc.topology("line(complete_bipartite(2))")
    body = [
        *around((190, 225), 95, letters, links),
        *around((570, 222), 122, [letters[a] + letters[b] for a, b in links],
                list(zip(lined.src.tolist(), lined.dst.tolist(), strict=True))),
        text(190, 392, "base G: 4 ranks, 8 links", anchor="middle"),
        text(570, 392, "line graph L(G): 8 ranks, 16 links", anchor="middle"),
    ]  # fmt: skip
    under = (
        "Rank ac of the line graph is the link from a to c of the base. It has links to ca and cb, the links out of c."
    )
    return explained("expansion", "A link of the base becomes a rank", under, 408, body)


_PODS = """topology pod { rank gpu[8]; switch nv[2], ib;
  for b in 0..2, g in 0..4 { link gpu[4*b+g] <-> nv[b] : 100 GB/s; link gpu[4*b+g] <-> ib : 10 GB/s; } }
collective c = allgather on pod; schedule c using forest;"""


def forest() -> Picture:
    """Draw one tree of a cluster of two boxes, and the cut that bounds all trees."""
    rows = rows_of(compiled(_PODS).schedule, 0)
    at = [(85 + 85 * g + 40 * (g > 3), 235.0) for g in range(8)]
    switches = {"NVSwitch 0": (212.5, 320.0), "NVSwitch 1": (592.5, 320.0), "InfiniBand": (402.5, 120.0)}
    body: list[Element] = []
    for g, place in enumerate(at):
        inside = switches[f"NVSwitch {g // 4}"]
        body += [line(*place, *inside, "grid"), line(*place, *switches["InfiniBand"], "grid")]
    for step, src, dst, _ in rows:
        height = 20 + abs(at[dst][0] - at[src][0]) / 6
        body += arc((at[src][0], at[src][1] - 16), (at[dst][0], at[dst][1] - 16), height, f"c{step}", "6 3" * step)
    for name, place in switches.items():
        body += [*box((place[0] - 48, place[1] - 14), 96, 28), text(place[0], place[1] + 4, name, anchor="middle")]
    for g, place in enumerate(at):
        body += node(place, str(g))
    cut = [(40, 190), (385, 190), (385, 350), (40, 350)]
    body += [path(cut, "thin bound", "8 5", close=True), text(40, 368, "cut: 4 shards enter over 40 GB/s")]
    under = "Solid: first step. Dashed: second step. Every rank roots such a tree; together they keep the cut busy."
    return explained("forest", "The tree of rank 0 on two boxes, and the bottleneck cut", under, 384, body)


def swing() -> Picture:
    """Draw the peers of two ranks on a ring of 16, for Swing and for recursive doubling."""
    body: list[Element] = []
    for panel, (name, peers) in enumerate((("Swing", swing_peers(16)), ("recursive doubling", doubling_peers(16)))):
        y = 176 + panel * 205
        at = [(48 + 47 * r, float(y)) for r in range(16)]
        body += [line(at[0][0], y, at[15][0], y, "axis"), text(20, y - 90, name, "title")]
        for step, peer in enumerate(peers[:4]):
            rank = 6 if panel == 0 else 0
            to = int(peer[rank])
            end = at[to]
            height = (18 + 15 * step) * (1 if to > rank else -1)
            body += arc((at[rank][0], y - math.copysign(16, height)), (end[0], y - math.copysign(16, height)), height,
                        f"c{step}", ("", "8 4", "3 3", "10 3 3 3")[step])  # fmt: skip
        for rank, place in enumerate(at):
            body += node(place, str(rank), radius=13)
    legend = [f"step {s + 1}: {d} and {e} away" for s, (d, e) in enumerate(((1, 1), (1, 2), (3, 4), (5, 8)))]
    for step, words in enumerate(legend):
        x, dash = 20 + 195 * step, ("", "8 4", "3 3", "10 3 3 3")[step]
        body += [line(x, 456, x + 34, 456, f"line c{step}", dash), text(x + 40, 460, words, "label")]
    under = "Swing changes sides, so its peers are nearer: 1, 1, 3, 5 ranks away. Recursive doubling: 1, 2, 4, 8."
    return explained("swing", "The first four peers of a rank on a ring of 16", under, 476, body)


def _weak_nic(factor: str, division: str) -> Fraction:
    """Return the seconds per byte, at large sizes, of an allreduce on four boxes with one NIC of less bandwidth."""
    net = "dgx_h100(4)" if factor == "1" else f"degraded(dgx_h100(4), {{gpu[0, 0] <-> ib}}, {factor})"
    found = compiled(f"topology t = {net}; collective c = allreduce on t; schedule c using forest {{ {division} }};")
    assert found.cost.forest is not None
    return found.cost.forest.time_per_byte


def allreduce_optimum() -> Picture:
    """Draw the time per byte of an allreduce with one weak NIC: equal shards beside free ones."""
    cases = {"all NICs at 50 GB/s": "1", "one NIC at 25 GB/s": "1/2", "one NIC at 5 GB/s": "1/10"}
    body: list[Element] = []
    times = {name: [_weak_nic(f, d) for d in ("division: equal", "division: free")] for name, f in cases.items()}
    scale = 470 / float(max(max(pair) for pair in times.values()))
    for row, (name, pair) in enumerate(times.items()):
        y = 84 + row * 68
        body += [text(20, y + 24, name)]
        for kind, seconds in enumerate(pair):
            top, wide = y + kind * 24, float(seconds) * scale
            body += box((170, top), wide, 18, "ring ink") if kind == 0 else [rectangle(170, top, wide, 18, "fill c0")]
            body += [text(178 + wide, top + 13, f"{float(seconds) * 1e12:.3f} ps/B", "label")]
    y = 84 + 3 * 68
    body += [*box((170, y), 30, 14), text(208, y + 12, "equal shards", "label")]
    body += [rectangle(330, y, 30, 14, "fill c0"), text(368, y + 12, "optimum over trees, reached", "label")]
    under = "An allreduce on 4 boxes of 8 H100. With free shards, the rank with the weak NIC roots less."
    return explained("allreduce-optimum", "What a weak NIC costs", under, y + 34, body)


def alltoall() -> Picture:
    """Draw a matrix of what boxes send each other as a sum of rounds."""
    matrix = np.array([[0, 3, 1, 2], [2, 0, 3, 1], [1, 2, 0, 3], [3, 1, 2, 0]]) + np.array(
        [[0] * 4] * 3 + [[0, 1, 0, 0]]
    )
    rounds = box_rounds(matrix)
    panels: list[tuple[str, Mapping[tuple[int, int], int]]] = [
        ("sent in all", {(i, j): int(matrix[i, j]) for i in range(4) for j in range(4) if matrix[i, j]})
    ]
    for number, (target, amount) in enumerate(zip(rounds.target, rounds.amount, strict=True)):
        pairs = {(i, int(j)): int(amount[i]) for i, j in enumerate(target) if amount[i]}
        panels.append((f"round {number + 1}: {int(rounds.weight[number])}", pairs))
    size, body = 27, list[Element]()
    step = 780 / len(panels)
    for number, (name, entries) in enumerate(panels):
        left = 20 + number * step
        body += [text(left, 92, name)]
        body += [
            rectangle(left + j * size, 104 + i * size, size, size, "thin quiet") for i in range(4) for j in range(4)
        ]
        for (i, j), units in entries.items():
            if number:
                body += [rectangle(left + j * size + 2, 106 + i * size, size - 4, size - 4, "ring c0")]
            body += [text(left + (j + 0.5) * size, 104 + (i + 0.65) * size, str(units), anchor="middle")]
    under = f"Row: sending box. Column: receiving box. A box sends to one box a round. Sum and bound: {rounds.total}."
    return explained("alltoall", "What boxes send each other, as rounds of one-to-one exchanges", under, 232, body)


def exact() -> Picture:
    """Draw the fronts of steps and bandwidth time that the scheduler proves."""
    curves = []
    for number, expression in enumerate(("torus(3, 2)", "diamond()", "modified_debruijn(2, 3)")):
        topology = collc.topology(expression)
        problem = Problem(topology, Collective("allgather", topology.num_ranks))
        costs = [cost(point.schedule) for point in pareto(problem, None, None)]
        points = [(found.T_L, Fraction(found.T_B)) for found in costs if found.T_B is not None]
        labels = [f"{bandwidth}" for _, bandwidth in points]
        curves.append(Series(expression, points, look(number), "line", dots=True, labels=labels))
    axes = Axis("steps", whole=True, margin=Fraction(1, 5)), Axis("T_B in M/B", margin=Fraction(1, 5))
    under = "Each point is proved: no schedule with as many steps and chunks has less bandwidth time."
    return Chart("Steps against bandwidth time of an allgather", *axes, curves, subtitle=under).picture()


_WORDS = {
    Opcode.SEND: "send", Opcode.RECV: "receive", Opcode.COPY: "copy", Opcode.RECV_COPY_SEND: "receive, copy, send",
    Opcode.RECV_REDUCE_SEND: "receive, add, send", Opcode.RECV_REDUCE_COPY: "receive, add, copy",
    Opcode.RECV_REDUCE_COPY_SEND: "receive, add, copy, send", Opcode.REDUCE: "add", Opcode.NOP: "wait",
}  # fmt: skip
_LOWERED = """topology net = complete(3); collective c = allreduce on net; schedule c using bfb; emit c as msccl-xml;"""


def _threadblocks(program: Program, rank: int) -> Iterator[Element]:
    """Draw the threadblocks of a rank as columns, their instructions as boxes, and dependencies as arrows."""
    blocks = [b for b in range(program.num_blocks) if program.block_rank[b] == rank]
    place: dict[int, Point] = {}
    wide = 760 / len(blocks)
    for column, b in enumerate(blocks):
        left = 20 + column * wide
        ends = [f"to {program.send_peer[b]}"] * int(program.send_peer[b] >= 0)
        ends += [f"from {program.recv_peer[b]}"] * int(program.recv_peer[b] >= 0)
        yield text(left, 92, f"threadblock {column}: {', '.join(ends)}")
        for row, i in enumerate(range(program.block_start[b], program.block_start[b + 1])):
            place[i] = (left, 104.0 + row * 40)
            yield from box(place[i], wide - 40, 26)
            yield text(left + 8, place[i][1] + 17, _WORDS[Opcode(int(program.opcode[i]))])
    for i, (left, top) in place.items():
        for other in program.deps[program.dep_start[i] : program.dep_start[i + 1]].tolist():
            start = (place[other][0] + (wide - 40 if place[other][0] < left else 0), place[other][1] + 13)
            end = (left if place[other][0] < left else left + wide - 40, top + 13)
            yield from arrow(start, end, "c1", "5 3", gap=0)


def lowering() -> Picture:
    """Draw the program of rank 0 of a small allreduce."""
    program = compiled(_LOWERED).program
    blocks = [b for b in range(program.num_blocks) if program.block_rank[b] == 0]
    rows = max(int(program.block_start[b + 1] - program.block_start[b]) for b in blocks)
    under = "Instructions of a threadblock run from top to bottom. A dashed arrow is a dependency between threadblocks."
    title = "The program of rank 0: allreduce on 3 ranks, all linked"
    return explained("lowering-and-safety", title, under, 120 + rows * 40, list(_threadblocks(program, 0)))


FIGURES: Mapping[str, Callable[[], Picture]] = {
    "bfb": bfb, "expansion": expansion, "forest": forest, "swing": swing, "allreduce-optimum": allreduce_optimum,
    "alltoall": alltoall, "exact": exact, "lowering-and-safety": lowering,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(FIGURES), choices=list(FIGURES), metavar="NAME")
    parser.add_argument("-o", dest="folder", type=Path, default=Path("docs/explanation"))
    options = parser.parse_args()
    for name in options.only:
        target = options.folder / f"{name}.svg"
        target.write_text(FIGURES[name]().file(), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
