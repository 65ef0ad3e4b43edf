"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0820": """\
the option `trees` of the target `svg` or `dot` is out of range

It is the largest number of trees that are drawn, 1 to 256. The picture says how many more there are.

    collc pod.coll -t 'svg{picture=trees, trees=24}' -o trees.svg
""",
    "C0821": """\
there are no trees to draw

`picture=trees` draws the trees of a schedule by trees. For a schedule in steps it draws the trees of one root: the
transfers by which its data arrive first. A schedule in which no rank sends anything has none.

    topology one { rank only; }
    collective grads = allreduce on one;
    emit grads as svg { picture: topology };
""",
}
