"""A file without its steps -> its ranks and threadblocks, if everything stands as :mod:`.writer` writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from collc.ir.progress import counting

from .markup import Element
from .model import Gpu, Steps, Threadblock

__all__ = ["STEPS", "Skeleton", "read_skeleton"]

#: the element that stands for the steps of a threadblock
STEPS = "collc-steps"

_NUMBER = r'"(-1|0|[1-9][0-9]{0,8})"'
_PLAIN = r'"[ !#-%\'-;=?-~]*"'
_COMMENT = re.compile(r"<!--((?:(?!--)[ -~])*)-->\n")
_HEAD = re.compile(rf"<algo((?: [A-Za-z]+={_PLAIN})*)>\n")
_ATTRIBUTE = re.compile(rf" ([A-Za-z]+)=({_PLAIN})")
_GPU = rf"  <gpu id={_NUMBER} i_chunks={_NUMBER} o_chunks={_NUMBER} s_chunks={_NUMBER}>\n"
_BLOCK = (
    rf"    <tb id={_NUMBER} send={_NUMBER} recv={_NUMBER} chan={_NUMBER}"
    rf'(/>\n|>\n      <{STEPS} n="[0-9]+"/>\n    </tb>\n)'
)
_END = "  </gpu>\n"
_LAST = f"{_END}</algo>\n"
#: the tag of a rank, after the end of the rank before it, or a threadblock; the first group is all of it
_TAG = re.compile(f"((?:{_END})?{_GPU}|{_BLOCK})")


class Skeleton(NamedTuple):
    """The ``algo`` element, with its comments and without children, and the ranks inside it."""

    head: Element
    gpus: tuple[Gpu, ...]


def read_skeleton(text: str, steps: Sequence[Steps]) -> Skeleton | None:
    """Return what stands in a text, with steps in place of the elements ``STEPS``, in order; None if it is unusual."""
    comments, at = list[str](), 0
    while comment := _COMMENT.match(text, at):
        comments.append(comment[1].strip())
        at = comment.end()
    head = _HEAD.match(text, at)
    tags: list[tuple[str, ...]] = [] if head is None else _TAG.findall(text, head.end())
    length = sum(len(tag[0]) for tag in tags) + len(_LAST)
    if head is None or head.end() + length != len(text) or not text.endswith(_LAST):
        return None
    attributes = [(name, value[1:-1]) for name, value in _ATTRIBUTE.findall(head[1])]
    if len(dict(attributes)) < len(attributes):
        return None
    line = len(comments) + 1
    gpus = _ranks(tags, steps, line + 1)
    return None if gpus is None else Skeleton(Element("algo", dict(attributes), line, comments=comments), gpus)


def _ranks(tags: Sequence[tuple[str, ...]], steps: Sequence[Steps], line: int) -> tuple[Gpu, ...] | None:
    """Return the ranks of the tags of ranks and threadblocks, the first of which stands in a line of the file."""
    ranks: list[tuple[list[int], int, list[Threadblock]]] = []
    used, none = 0, Steps.none()
    for tag in tags:
        if tag[1]:
            if tag[0].startswith(_END) != bool(ranks):
                return None
            line += bool(ranks)
            ranks.append((list(map(int, tag[1:5])), line, []))
            line += 1
            continue
        has_steps = tag[9] != "/>\n"
        if not ranks or (has_steps and used == len(steps)):
            return None
        of_block = steps[used] if has_steps else none
        number, send, recv, chan = map(int, tag[5:9])
        ranks[-1][2].append(Threadblock(number, send, recv, chan, of_block, line))
        used += has_steps
        line += len(of_block) + 2 if has_steps else 1
    if used < len(steps) or not ranks:
        return None
    listed = counting(ranks, "reading ranks")
    return tuple(Gpu(number, i, o, s, tuple(blocks), line) for (number, i, o, s), line, blocks in listed)
