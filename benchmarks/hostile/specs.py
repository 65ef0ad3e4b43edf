"""Specifications that mean something: networks of up to a few dozen ranks, all collectives, schedulers and targets."""

from __future__ import annotations

import random

__all__ = ["MOST_RANKS", "specification", "topology"]

#: expressions are drawn so that most networks have no more ranks than this
MOST_RANKS = 24
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
_KINDS = ("allgather", "reduce-scatter", "allreduce", "allreduce", *_ROOTED, "alltoall")
_SIZES = ("", "", "64 B", "1 KiB", "1000 B", "1 MiB", "7 B", "1 GiB", "0 B")
_OPS = ("sum", "max", "min", "prod", "avg", "band", "user", "ordered")
_TYPES = ("float32", "float64", "int32", "int8", "float16", "bfloat16")

#: family -> parameters drawn by a source of luck
_FAMILIES = (
    ("complete", lambda x: f"{x.randint(1, 8)}"),
    ("complete_bipartite", lambda x: f"{x.randint(1, 5)}"),
    ("hamming", lambda x: x.choice(("1, 4", "2, 2", "2, 3", "3, 2"))),
    ("kautz", lambda x: x.choice(("1, 3", "2, 1", "2, 2", "3, 1"))),
    ("generalized_kautz", lambda x: f"{x.randint(1, 4)}, {x.randint(2, 14)}"),
    ("circulant", lambda x: _offsets(x, 13)),
    ("directed_circulant", lambda x: _offsets(x, 13)),
    ("biring", lambda x: f"{x.randint(2, 9)}, {2 * x.randint(1, 3)}"),
    ("uniring", lambda x: f"{x.randint(2, 9)}, {x.randint(1, 3)}"),
    ("shifted_ring", lambda x: f"{x.randint(5, 12)}"),
    ("torus", lambda x: x.choice(("2", "3", "5", "2, 2", "3, 2", "4, 2", "3, 3", "4, 4", "2, 2, 2", "3, 2, 2"))),
    ("mesh", lambda x: x.choice(("4", "2, 3", "3, 3", "2, 2, 2", "4, 3"))),
    ("twisted_torus", lambda x: x.choice(("2, 4", "3, 6"))),
    ("hypercube", lambda x: f"{x.randint(1, 4)}"),
    ("twisted_hypercube", lambda x: f"{x.randint(2, 4)}"),
    ("debruijn", lambda x: x.choice(("2, 2", "2, 3", "3, 2"))),
    ("modified_debruijn", lambda x: x.choice(("2, 2", "2, 3", "2, 4"))),
    ("double_binary_tree", lambda x: f"{x.randint(2, 12)}"),
    ("cayley", lambda x: x.choice(("dihedral(4), {1, 4}", "cyclic(9), {1}", "metacyclic(8, 4, 3), {5, 17, 20, 30}"))),
    ("polycirculant", lambda x: x.choice(("10, {1, 2}, {4}", "12, {1, 6}, {3}, {}", "9, {2}", "6, {1}, {2}, {5}"))),
    ("directed_polycirculant", lambda x: x.choice(("10, {1, 4}, {2, 5}", "12, {1, 2}, {4}, {1}", "9, {2, 5}"))),
    ("polarity", lambda x: x.choice(("3, 2", "3, 3", "3, 4", "4, 2", "4, 4", "5, 2"))),
    ("distance_regular", lambda x: x.choice(('"octahedron"', '"k55-minus-matching"'))),
    ("hyperx", lambda x: x.choice(("3, 2", "4", "2, 2, 2"))),
    ("hammingmesh", lambda x: "2, 2, 2, 2"),
    ("fat_tree", lambda x: x.choice(("2", "4", "4, 2"))),
    ("leaf_spine", lambda x: x.choice(("2, 2, 1", "2, 4, 2", "3, 2, 2, 2"))),
    ("dragonfly", lambda x: x.choice(("1, 2, 1", "2, 2, 1"))),
    ("dragonfly_plus", lambda x: x.choice(("2, 2, 2, 1", "1, 2, 2, 2, 3", "1, 1, 1, 1"))),
    ("slim_fly", lambda x: x.choice(("2", "3", "2, 1", "3, 2"))),
    ("jellyfish", lambda x: x.choice(("5, 2, 1, 2", f"{x.randint(2, 12)}, {x.randint(1, 4)}, {x.randrange(9)}"))),
    ("xpander", lambda x: x.choice(("3, 4", "4, 3, 2", "2, 2, 1, 2", f"{x.randint(1, 4)}, {x.randint(1, 5)}"))),
    ("diamond", lambda x: ""),
    ("dgx_a100", lambda x: x.choice(("1", "2", "2, 2", "3"))),
    ("dgx_h100", lambda x: x.choice(("1", "2", "2, 8"))),
    ("dgx_b200", lambda x: x.choice(("1", "2", "2, 4"))),
    ("gb200_nvl72", lambda x: "1"),
    ("mi300x", lambda x: x.choice(("", "1", "2", "2, 8"))),
    ("tpu_v4", lambda x: x.choice(("1, 1, 2", "2, 2, 2", "1, 2, 4", "4, 2, 2", "1, 4, 4, 1"))),
    ("mi250", lambda x: "1"),
    ("dgx1_v100", lambda x: ""),
)  # fmt: skip

#: families whose links have bandwidths of their own
_RATED = ("dgx_a100", "dgx_h100", "dgx_b200", "gb200_nvl72", "mi300x", "tpu_v4", "mi250", "dgx1_v100")
#: families of boxes -> the names of nodes that may fail: the rank and the switch of a box
_BOXED = {"dgx_a100": "nv", "dgx_h100": "nv", "dgx_b200": "nv", "gb200_nvl72": "nv", "mi300x": "ib"}
_TREES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
_HALVES = ("allgather", "reduce-scatter", "allreduce")
#: scheduler -> the collectives it takes, and options
_SCHEDULERS = {
    "auto": (_KINDS, ("",)),
    "bfb": (_TREES, ("", "", "chunks: {n}", "relax: false")),
    "expansion": (_HALVES, ("",)),
    "exact": (_KINDS, ("", "chunks: {n}", "chunks: 2, rounds: {n}", "steps: {n}")),
    "flow": (("alltoall",), ("",)),
    "general": (
        ("allgather", "broadcast", "gather", "scatter", "alltoall"),
        ("", "objective: latency", "objective: bandwidth", "pieces: {n}", "chunks: {n}"),
    ),
    "forest": (_TREES, ("", "k: {n}", "pieces: {n}", "k: auto", "k: optimal", "k: {n}, pieces: {n}")),
    "swing": (_TREES, ("", "ports: 1")),
    "recursive-doubling": (("allreduce", "broadcast", "reduce"), ("",)),
    "rabenseifner": (_HALVES, ("",)),
    "bucket": (_HALVES, ("",)),
    "ring": (_HALVES, ("", "rings: 1", "rings: 2", "rings: nics")),
    "two-tier": (("alltoall",), ("", "rounds: false", "slices: {n}", "chunks: {n}")),
    "two-level": (_HALVES, ("", "across: pat", "pipeline: {n}")),
    "box-trees": (("allreduce",), ("", "pieces: {n}", "channels: {n}")),
    "nccl-rings": (_TREES, ("", "pieces: {n}", "rings: {n}", "node: {n}")),
    "double-binary-tree": (("allreduce", "broadcast", "reduce"), ("",)),
    "bine": (_KINDS[:-1], ("",)),
    "pat": (("allgather", "reduce-scatter"), ("",)),
    "trivance": (_HALVES, ("",)),
}
_TARGETS = (
    "msccl-xml", "msccl-xml { runtime: executor }", "msccl-xml { runtime: rccl }", "msccl-xml { runtime: msccl }",
    "msccl-xml { proto: LL }", "msccl-xml { channels: 4 }", "mpi-c", "mpi-c", "oneccl-xml", "ir", "nccl-graph",
)  # fmt: skip


def _offsets(luck: random.Random, most: int) -> str:
    ranks = luck.randint(5, most)
    offsets = sorted(luck.sample(range(1, ranks // 2 + 1), luck.randint(1, 2)))
    return f"{ranks}, {{{', '.join(map(str, offsets))}}}"


def topology(luck: random.Random) -> str:
    """Return the declaration of a topology named ``t``: a family, operators on one, or links drawn at random."""
    if luck.random() < 0.2:
        return _links(luck)
    name, parameters = luck.choice(_FAMILIES)
    text = f"{name}({parameters(luck)})"
    for _ in range(luck.choice((0, 0, 1, 1, 2, 3))):
        text = _operated(text, name, luck)
    rates = luck.choice(("", "", "bandwidth: 25 Gbps, latency: 10 us", "bandwidth: 100 GB/s"))
    more = luck.choice(
        ("", "", "reduction: 50 GB/s", "launch: 20 us", "reduction: 1 B/s, launch: 0 us", "launch: 1 ns")
    )
    shown = ", ".join(one for one in ("" if name in _RATED else rates, more) if one)
    return f"topology t = {text}{f' with {{ {shown} }}' if shown else ''};\n"


def _operated(text: str, family: str, luck: random.Random) -> str:
    """Return an operator of the language on the text of a topology."""
    match luck.randrange(16):
        case 0:
            return f"line({text})"
        case 1:
            return f"degree({text}, 2)"
        case 2:
            return f"product({text}, {luck.choice(('complete(2)', 'biring(3)', 'uniring(2)'))})"
        case 3:
            return f"transpose({text})"
        case 4:
            return f"bidirectional({text})"
        case 5:
            return f"subset({text}, {{{', '.join(str(r) for r in range(luck.randint(1, 5)))}}})"
        case 6:
            return f"power({luck.choice(('complete(2)', 'complete(3)', 'uniring(3)', 'biring(3)'))}, 2)"
        case 7 | 8 | 9:
            return f"without({text}, {_parts(family, luck)})"
        case 10 | 11:
            return f"degraded({text}, {_parts(family, luck)}, {luck.choice(('1/2', '1/3', '0.9', '1', '7/1000', '0'))})"
        case 12:
            return f"in_network({text}, {_parts(family, luck)})"
        case 13:
            return f"inserted({text}, {_parts(family, luck)}{luck.choice(('', ', 1', ', 2', ', 3'))})"
        case 14:
            count = luck.choice((2, 3, 4, 5, 6, 8, 9, 12, 16))
            return f"relabel({text}, {{{', '.join(map(str, luck.sample(range(count), count)))}}})"
        case _:
            rest = luck.choice(("", ", 1", ", 2", ", 1, 2"))
            return f"clustered({text}, {luck.choice((1, 2, 3))}, {luck.choice(('1', '25 GB/s'))}{rest})"


def _parts(family: str, luck: random.Random) -> str:
    """Return a set of ranks, switches and links; most of them exist, by the usual numbers and names."""
    parts = [_part(family, luck) for _ in range(luck.choice((1, 1, 2, 3)))]
    parts += parts[:1] * (luck.random() < 0.1)
    return f"{{{', '.join(parts)}}}"


def _part(family: str, luck: random.Random) -> str:
    join, first = luck.choice((" <-> ", " <-> ", " -> ")), luck.randrange(6)
    if family in _BOXED and luck.random() < 0.6:
        gpu, switch = f"gpu[{luck.randrange(2)}, {luck.randrange(8)}]", _BOXED[family]
        switch += f"[{luck.randrange(2)}]" if switch == "nv" else luck.choice(("", "[0]"))
        return luck.choice((gpu, switch, f"{gpu}{join}{switch}", f"{switch}{join}{gpu}"))
    return luck.choice((str(first), f"{first}{join}{first + luck.choice((1, 1, 2, 3))}", f"{first + 1}{join}{first}"))


def _links(luck: random.Random) -> str:
    """Return a network of links drawn at random, most often connected, some of them through switches."""
    ranks, switches = luck.randint(2, 9), luck.choice((0, 0, 1, 2))
    names = [f"g[{r}]" for r in range(ranks)] + [f"s{k}" for k in range(switches)]
    order = luck.sample(names, len(names))
    ends = list(zip(order, [*order[1:], order[0]], strict=True)) if luck.random() < 0.95 else []
    ends += [tuple(luck.sample(names, 2)) for _ in range(luck.randrange(2 * ranks))]
    lines = [f"  rank g[{ranks}];"] + [f"  switch s{k};" for k in range(switches)]
    rated = luck.random() < 0.5
    for a, b in ends:
        rate = f" : {luck.choice((1, 2, 25, 50, 300))} GB/s" if rated else ""
        rate += f", {luck.choice((1, 700, 3000))} ns" if rated and luck.random() < 0.5 else ""
        lines.append(f"  link {a} {luck.choice(('<->', '<->', '->'))} {b}{rate};")
    return "topology t {\n" + "\n".join(lines) + "\n}\n"


def _braced(options: list[str]) -> str:
    return f" {{ {', '.join(options)} }}" if options else ""


_UNEVEN = ("allgather", "reduce-scatter", "gather", "scatter", "alltoall")


def _of_few_ranks(name: str, kind: str, options: list[str], luck: random.Random) -> str:
    """Return a collective among some ranks, one whose shards differ in size, or one of custom shards."""
    members = sorted(luck.sample(range(6), luck.randint(1, 4)))
    among = f" among {{{', '.join(map(str, members))}}}"
    if luck.random() < 0.3:
        shift = luck.choice(("(r + 1) mod ranks", "{(r + 1) mod ranks, r}", "ranks - 1 - r", "{}"))
        declared = f"collective own_{name} {{ pre: 0..ranks post: {{{shift} for r in 0..ranks}} }}\n"
        kind, options = luck.choice(("neighbours", f"own_{name}")), [one for one in options if "root" not in one]
        return f"{declared}collective {name} = {kind} on t{luck.choice(('', among))}{_braced(options)};\n"
    options = [f"root: {luck.choice(members)}" if one.startswith("root") else one for one in options]
    if kind in _UNEVEN and luck.random() < 0.7:
        rows = [", ".join(str(luck.choice((0, 1, 1, 2, 5, 999))) for _ in members) for _ in members]
        weights = f"matrix: {{{', '.join(f'{{{row}}}' for row in rows)}}}" if kind == "alltoall" else ""
        kind, options = f"{kind}v", [*options, weights or f"weights: {{{rows[0]}}}"]
    return f"collective {name} = {kind} on t{among}{_braced(options)};\n"


#: collective of 4 ranks -> bodies of its schedule by hand; HERE stands where a transfer may choose its place
_BY_HAND = (
    ("allreduce", "for r in 0..4, k in 0..4 { if r != k { at 0: reduce shard k from r to kHERE; "
     "at 1: send shard k from k to rHERE; } }"),
    ("allreduce", "for s in 0..3, r in 0..4 { at s: reduce shard (r - s) mod 4 from r to next(r)HERE; "
     "at 3 + s: send shard (r - s + 1) mod 4 from r to next(r)HERE; }"),
    ("allreduce", "define swap(r, k) { reduce shards 0..4 from r to xor(r, k)HERE; } "
     "for r in 0..4 { at 0: call swap(r, 1); at 1: call swap(r, 2); }"),
    ("allgather", "for r in 0..4 { at 0: send shard r from r to xor(r, 1)HERE; "
     "at 1: send shards {r, xor(r, 1)} parts 0..2 of 2 from r to xor(r, 2)HERE; }"),
    ("reduce-scatter", "for s in 0..3, r in 0..4 { at s: reduce shard (r - s - 1) mod 4 from r to next(r)HERE; }"),
    ("alltoall", "for a in 0..4, b in 0..4 { if a != b { if xor(a, b) == 3 { "
     "at 0: send shard a * 4 + b from a to xor(a, 1)HERE; at 1: send shard a * 4 + b from xor(a, 1) to bHERE; } "
     "else { at 1: send shard a * 4 + b from a to bHERE; } } }"),
    ("custom", "at 0: reduce shards 0..2 from 0 to 1HERE; at 1: reduce shards 0..4 by 2 from 3 to 2HERE; "
     "at 2: reduce shard 0 from 1 to 2HERE; at 2: send shard 1 from 1 to 3HERE;"),
)  # fmt: skip
_NUMBERS = ("0", "1", "{v}", "{v} mod 2", "next({v})", "2 * {v}")
_CHOICES = ("channel", "threadblock", "send-threadblock", "receive-threadblock")


def _by_hand(luck: random.Random) -> str:
    """Return a schedule by hand, whose transfers choose channels, threadblocks and scratch; many choices are wrong."""
    kind, body = luck.choice(_BY_HAND)
    variable = "a" if kind == "alltoall" else "1" if kind == "custom" else "r"
    while "HERE" in body:
        body = body.replace("HERE", _place(variable, luck) if luck.random() < 0.7 else "", 1)
    conditions = " { pre: {{0, 1, 3}, {0, 1}, {2, 3}}, post: {2, {1, 3}, 2} }" if kind == "custom" else ""
    instances = luck.choice(("", "", "", " with { instances: 2 }"))
    return (
        f"function next(r) = (r + 1) mod 4;\ntopology t = complete(4);\ncollective c = {kind} on t{conditions};\n"
        f"schedule c using steps{instances} {{ {body} }}\nemit c as {luck.choice(_TARGETS)};\n"
    )


def _place(variable: str, luck: random.Random) -> str:
    """Return what a transfer chooses."""
    number = lambda: luck.choice(_NUMBERS).replace("{v}", variable)  # noqa: E731
    text = f" into scratch {number()}" if luck.random() < 0.5 else ""
    chosen = [f"{name}: {number()}" for name in _CHOICES if luck.random() < 0.25]
    return text + _braced(chosen)


def specification(luck: random.Random) -> str:
    """Return a text with a topology, one or two collectives, how to schedule them and what to write."""
    if luck.random() < 0.1:
        return _by_hand(luck)
    text = topology(luck)
    for name in luck.choice((("c",), ("c",), ("c",), ("c", "d"))):
        kind = luck.choice(_KINDS)
        options = []
        if kind in _ROOTED:
            options.append(f"root: {luck.choice((0, 0, 1))}")
        if (size := luck.choice(_SIZES)) and luck.random() < 0.6:
            options.append(f"size: {size}")
        if "reduce" in kind and luck.random() < 0.3:
            options.append(f"op: {luck.choice(_OPS)}")
        if luck.random() < 0.2:
            options.append(f"dtype: {luck.choice(_TYPES)}")
        even = f"collective {name} = {kind} on t{_braced(options)};\n"
        text += even if luck.random() < 0.8 else _of_few_ranks(name, kind, options, luck)
        if luck.random() < 0.7:
            takes = [s for s, (kinds, _) in sorted(_SCHEDULERS.items()) if kind in kinds or luck.random() < 0.02]
            scheduler = luck.choice(takes)
            chosen = luck.choice(_SCHEDULERS[scheduler][1]).replace("{n}", str(luck.choice((1, 2, 3, 4, 7))))
            text += f"schedule {name} using {scheduler}{_braced([chosen] if chosen else [])};\n"
        text += f"emit {name} as {luck.choice(_TARGETS)};\n"
    return text
