"""Faults to plant in right MSCCL-XML files: each changes one thing that some tool has got wrong."""

from __future__ import annotations

import random
import re

__all__ = ["KINDS", "MORE", "plant"]

KINDS = ("offset", "count", "peer", "order", "dependency", "op", "channel")
#: faults beyond single attributes of steps and threadblocks: declared chunks, attributes of the algorithm, a step lost,
#: done twice or by another threadblock, another buffer, a flag not set, two threadblocks with one connection, a wider
#: range of sizes, other uses claimed, two faults at once
MORE = ("chunks", "head", "lost", "twice", "moved", "buffer", "flag", "collision", "window", "use", "two")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TYPES = ("s", "r", "cpy", "re", "rcs", "rrc", "rrs", "rrcs", "nop")


def plant(text: str, kind: str, luck: random.Random) -> str:
    """Return the text with one fault of a kind, or as it was where there is no place for such a fault."""
    lines = text.split("\n")
    steps = [n for n, line in enumerate(lines) if "<step " in line]
    blocks = [n for n, line in enumerate(lines) if "<tb " in line]
    match kind:
        case "order":
            return "\n".join(_swap(lines, steps, luck))
        case "two":
            return plant(plant(text, luck.choice(KINDS), luck), luck.choice(KINDS), luck)
        case "head":
            return _headed(text, luck)
        case "window":
            return _with_head(text, **luck.choice([{"maxBytes": 0}, {"maxBytes": 1 << 40}, {"minBytes": 0}]))
        case "use":
            return _with_head(text, **luck.choice([{"inplace": 1}, {"outofplace": 1}, {"inplace": 1, "outofplace": 1}]))
        case "lost" | "twice":
            at = luck.choice(steps)
            return "\n".join(_numbered(lines[:at] + [lines[at]] * (2 if kind == "twice" else 0) + lines[at + 1 :]))
        case "moved":
            at = luck.choice(steps)
            end = next(n for n in range(at, len(lines)) if "</gpu>" in lines[n])
            others = [n for n in range(at, end) if "</tb>" in lines[n]][1:] or [at]
            to = luck.choice(others)
            return "\n".join(_numbered([*lines[:at], *lines[at + 1 : to], lines[at], *lines[to:]]))
        case "collision":
            return "\n".join(_collided(lines, blocks, luck))
    if kind == "chunks":
        at = luck.choice([n for n, line in enumerate(lines) if "<gpu " in line])
        name = luck.choice(["i_chunks", "o_chunks", "s_chunks"])
        found = int(dict(_ATTRIBUTE.findall(lines[at]))[name])
        lines[at] = _with(lines[at], **{name: max(found + luck.choice([-2, -1, 1, 5]), 0)})
        return "\n".join(lines)
    if kind in ("peer", "channel"):
        at = luck.choice(blocks)
        ranks, channels = text.count("<gpu "), int(dict(_ATTRIBUTE.findall(text))["nchannels"])
        lines[at] = _ended(lines[at], kind, ranks, channels, luck)
    elif kind == "flag":
        set_ = [n for n in steps if 'hasdep="1"' in lines[n]]
        if set_:
            at = luck.choice(set_)
            lines[at] = _with(lines[at], hasdep=0)
    else:
        at = luck.choice(steps)
        lines[at] = _stepped(lines[at], kind, luck)
    return "\n".join(lines)


def _with(line: str, **changes: object) -> str:
    for name, value in changes.items():
        line = re.sub(rf'\b{name}="[^"]*"', f'{name}="{value}"', line)
    return line


def _headed(text: str, luck: random.Random) -> str:
    """Change an attribute of the algorithm."""
    start = text.index("<algo ")
    values = dict(_ATTRIBUTE.findall(text[start : text.index("\n", start)]))
    name = luck.choice(
        ["proto", "nchannels", "nchunksperloop", "inplace", "outofplace", "maxBytes", "minBytes", "coll"]
    )
    found = values[name]
    choices: dict[str, list[object]] = {
        "proto": ["Simple", "LL", "LL128"], "inplace": [0, 1], "outofplace": [0, 1],
        "maxBytes": [0, 1 << 20, 1 << 26, 1 << 40], "minBytes": [0, 1 << 20, 1 << 26],
        "coll": ["allreduce", "allgather", "alltoall", "reducescatter", "reduce_scatter"],
    }  # fmt: skip
    fallback = [int(found) - 1, int(found) + 1, 2 * int(found)] if found.isdigit() else []
    changed = luck.choice([v for v in choices.get(name, fallback) if str(v) != found])
    return _with_head(text, **{name: changed})


def _with_head(text: str, **changes: object) -> str:
    start = text.index("<algo ")
    end = text.index("\n", start)
    return text[:start] + _with(text[start:end], **changes) + text[end:]


def _numbered(lines: list[str]) -> list[str]:
    """Number all steps of every threadblock anew; who waits for them waits for the old numbers."""
    result, number = [], 0
    for line in lines:
        number = 0 if "<tb " in line else number
        if "<step " in line:
            line, number = _with(line, s=number), number + 1
        result.append(line)
    return result


def _collided(lines: list[str], blocks: list[int], luck: random.Random) -> list[str]:
    """Give a threadblock the peer and channel of another one of its rank, on one side."""
    at = luck.choice(blocks)
    first = max(n for n in range(at) if "<gpu " in lines[n])
    end = next(n for n in range(at, len(lines)) if "</gpu>" in lines[n])
    other = dict(_ATTRIBUTE.findall(lines[luck.choice([n for n in blocks if first < n < end])]))
    side = luck.choice(["send", "recv"])
    lines[at] = _with(lines[at], **{side: other[side], "chan": other["chan"]})
    return lines


def _swap(lines: list[str], steps: list[int], luck: random.Random) -> list[str]:
    """Exchange two steps of a threadblock, mostly neighbours; they keep the numbers of their places."""
    first = luck.choice(steps)
    end = next(n for n in range(first, len(lines)) if "<step " not in lines[n])
    if end - first < 2:
        return lines
    second = first + 1 if luck.random() < 0.7 else luck.randrange(first + 1, end)
    numbers = [dict(_ATTRIBUTE.findall(lines[n]))["s"] for n in (first, second)]
    lines[first], lines[second] = _with(lines[second], s=numbers[0]), _with(lines[first], s=numbers[1])
    return lines


def _ended(line: str, kind: str, ranks: int, channels: int, luck: random.Random) -> str:
    values = dict(_ATTRIBUTE.findall(line))
    if kind == "channel":
        return _with(line, chan=luck.choice([c for c in range(-1, channels + 1) if str(c) != values["chan"]]))
    side = luck.choice(["send", "recv"])
    return _with(line, **{side: luck.choice([r for r in range(-1, ranks + 1) if str(r) != values[side]])})


def _stepped(line: str, kind: str, luck: random.Random) -> str:
    values = dict(_ATTRIBUTE.findall(line))
    match kind:
        case "buffer":
            side = luck.choice(["src", "dst"])
            return _with(line, **{f"{side}buf": luck.choice([b for b in "ios" if b != values[f"{side}buf"]])})
        case "offset":
            side = luck.choice(["src", "dst"])
            if luck.random() < 0.2:
                return _with(line, **{f"{side}buf": luck.choice([b for b in "ios" if b != values[f"{side}buf"]])})
            offset = int(values[f"{side}off"])
            return _with(line, **{f"{side}off": luck.choice([offset - 1, offset + 1, offset + 2, luck.randrange(16)])})
        case "count":
            return _with(line, cnt=luck.choice([int(values["cnt"]) + d for d in (-1, 1, 2, 71)]))
        case "op":
            return _with(line, type=luck.choice([t for t in _TYPES if t != values["type"]]))
    if luck.random() < 0.3:
        return _with(line, hasdep=1 - int(values["hasdep"]))
    if values["depid"] != "-1" and luck.random() < 0.5:
        if luck.random() < 0.5:
            return _with(line, depid=-1, deps=-1)
        return _with(line, deps=max(int(values["deps"]) + luck.choice([-2, -1, 1, 2]), 0))
    return _with(line, depid=luck.randrange(4), deps=luck.randrange(6))
