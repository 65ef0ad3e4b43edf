"""Algorithms arranged as other tools and the runtimes' authors arrange them, and texts that say the same otherwise."""

from __future__ import annotations

import random
import re

from msccl_files import xml

__all__ = ["PUBLISHED", "hierarchical_allgather", "one_pass_allreduce", "presented", "rail_allgather", "tree_allreduce"]


def one_pass_allreduce(ranks: int, channels: int = 2, **head: object) -> str:
    """Everybody sends everything to everybody and adds it all up: chains of `nop` wait for sends and receives.

    Every rank has two more threadblocks without peers, which add up the first chunk of each channel; whoever exchanges
    with the k-th peer then adds up chunk k.
    """
    rows = []
    for rank in range(ranks):
        peers = [p for p in range(ranks) if p != rank]
        blocks = [(-1, -1, c, _sums(rank, peers, -1, c, ranks, channels)) for c in range(channels)]
        for k, peer in enumerate(peers):
            for c in range(channels):
                mine, theirs = _slot(peer, rank, c, ranks), _slot(rank, peer, c, ranks)
                steps = [f"s i{c * ranks} s{mine} {ranks} !", f"r i{c * ranks} s{theirs} {ranks} !"]
                blocks.append((peer, peer, c, steps + _sums(rank, peers, k, c, ranks, channels)))
        rows.append(blocks)
    chunks = ranks * channels
    given = {"name": "pairs", "proto": "LL", "nchannels": channels, "inplace": 1, "outofplace": 0, **head}
    return xml("allreduce", chunks, rows, (chunks, 0, (ranks - 1) * chunks), **given)


def _slot(rank: int, sender: int, channel: int, ranks: int) -> int:
    """Return where a rank keeps what a sender sent it on a channel."""
    return (channel * (ranks - 1) + sender - (sender > rank)) * ranks


def _sums(rank: int, peers: list[int], k: int, channel: int, ranks: int, channels: int) -> list[str]:
    """Return the steps that add up chunk k+1: waits for all others' sends and receives, then a run of `re`."""
    blocks = [channels + channels * j + channel for j in range(len(peers)) if j != k]
    waits = [f"<{block}:{step}" for step in (0, 1) for block in blocks]
    sums = [f"re s{_slot(rank, peer, channel, ranks) + k + 1} i{channel * ranks + k + 1} 1" for peer in peers]
    if not waits:
        return sums
    return [f"nop {wait}" for wait in waits[:-1]] + [f"{sums[0]} {waits[-1]}", *sums[1:]]


def rail_allgather(**head: object) -> str:
    """Four ranks in two machines: each sends its own part to both neighbours and passes on what came over the rail."""
    rows = []
    for rank in range(4):
        near, rail, far = rank ^ 1, rank ^ 2, rank ^ 3
        receive = {near: ["r i0 o{} 1", f"r o{far} o{far} 1"], rail: ["r i0 o{} 1 !"]}
        order = sorted((near, rail))
        came = order.index(rail)
        send = {near: [f"s i0 o{rank} 1", f"s o{rail} o{rail} 1 <{came}:0"],
                rail: [f"s i0 o{rank} 1", f"cpy i0 o{rank} 1"]}  # fmt: skip
        rows.append([(-1, p, 0, [step.format(p) for step in receive[p]]) for p in order]
                    + [(p, -1, 0, send[p]) for p in order])  # fmt: skip
    return xml("allgather", 4, rows, (1, 4, 0), **{"name": "rail", **head})


def hierarchical_allgather(channels: int = 4, **head: object) -> str:
    """Four ranks in two machines: what comes from the other one is passed on at once, with `rcs`."""
    rows = []
    for rank in range(4):
        near, far, n = rank ^ 1, rank ^ 2, channels
        rows.append(
            [(-1, near, c, [f"r i{c} o{n * near + c} 1", f"r o{n * (near ^ 2) + c} o{n * (near ^ 2) + c} 1"])
             for c in range(n)]
            + [(near, far, c, [f"s i{c} o{n * rank + c} 1", f"rcs i{c} o{n * far + c} 1"]) for c in range(n)]
            + [(far, -1, c, [f"s i{c} o{n * rank + c} 1", f"cpy i{c} o{n * rank + c} 1"]) for c in range(n)]
        )  # fmt: skip
    given = {"name": "hierarchical", "nchannels": channels, "minBytes": 792576, "maxBytes": 1 << 30, **head}
    return xml("allgather", 4 * channels, rows, (channels, 4 * channels, 0), **given)


def tree_allreduce(chunks: int = 3, **head: object) -> str:
    """Three ranks, the first the root of the other two: sums go up with `rrc`, results come down, chunk by chunk."""
    down = [f"r o{k} o{k} 1" for k in range(chunks)]
    leaf = [[(0, 0, 0, [f"s i{k} o{k} 1" for k in range(chunks)] + down)]]
    root = [
        (1, 1, 0, [f"rrc i{k} o{k} 1 !" for k in range(chunks)]
         + [f"s o{k} o{k} 1 <1:{k}" for k in range(chunks)]),
        (2, 2, 0, [f"rrc o{k} o{k} 1 <0:{k} !" for k in range(chunks)] + [f"s o{k} o{k} 1" for k in range(chunks)]),
    ]  # fmt: skip
    given = {"name": "tree", "proto": "LL128", "inplace": 1, "outofplace": 1, **head}
    return xml("allreduce", chunks, [root, *leaf, *leaf], (chunks, chunks, 0), **given)


#: name -> a right file, as strangers write them
PUBLISHED: dict[str, str] = {
    "one pass": one_pass_allreduce(4, minBytes=2048, maxBytes=13312),
    "one pass, three ranks": one_pass_allreduce(3, 1, proto="Simple", maxBytes=1 << 20),
    "rail": rail_allgather(),
    "hierarchical": hierarchical_allgather(),
    "tree": tree_allreduce(),
}


def presented(text: str, luck: random.Random) -> str:
    """Return a text that says the same to every runtime, as another tool would print it."""
    text = re.sub(r"<(\w+)((?: \w+=\"[^\"]*\")+)", lambda tag: _tag(tag, luck), text)
    text = _shuffled(text, "gpu", luck)
    if luck.random() < 0.5:
        text = re.sub(r"<step([^>]*)/>", r"<step\1></step>", text)
    if luck.random() < 0.5:
        text = re.sub(r'"(/?)>', r'" \1>', text)
    head = luck.choice(["", "<!-- made by hand -->\n", "<!-- (c) nobody -->\n<!-- all rights -->\n", "\n\n  "])
    indent = luck.choice(["  ", "    ", " ", ""])
    end = luck.choice(["\n", "\r\n", "", "\n\n"])
    lines = [indent * ((len(line) - len(line.lstrip())) // 2) + line.strip() for line in text.splitlines()]
    return head + end.join(lines) + luck.choice(["", "\n", "\n<!-- end -->\n"])


def _tag(tag: re.Match[str], luck: random.Random) -> str:
    """Shuffle the attributes and add some that nobody reads."""
    attributes = re.findall(r'\w+="[^"]*"', tag[2])
    luck.shuffle(attributes)
    more = luck.sample(['redop="sum"', 'nthreadblocks="9"', 'nthreads_per_tb="512"', 'ty="a &lt; b"', 'note=""'], 2)
    return f"<{tag[1]} " + " ".join([*attributes, *more[: luck.randrange(3)]])


def _shuffled(text: str, tag: str, luck: random.Random) -> str:
    """Put the elements of one kind in another order."""
    found = re.findall(rf"(?s) *<{tag} .*?</{tag}>\n", text)
    mixed = luck.sample(found, len(found))
    for one, other in zip(found, mixed, strict=True):
        text = text.replace(one, f"\0{found.index(other)}\0", 1)
    return re.sub(r"\0(\d+)\0", lambda place: found[int(place[1])], text)
