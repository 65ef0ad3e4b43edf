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
only forests have trees to draw

`picture=trees` draws the trees of a schedule by trees. The scheduler of this collective gives every transfer a step
instead. `forest`, `double-binary-tree` and others make trees; `collc schedulers` lists them.

    schedule grads using forest;
    emit grads as svg { picture: trees };
""",
}
