"""MSCCL-XML as others write it."""

from __future__ import annotations

from pathlib import Path

from msccl_files import xml

#: two ranks exchange and add up in `i`: right in place only
IN_PLACE = xml(
    "allreduce", 2, [[(1, 1, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])],
                     [(0, 0, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])]],
    (2, 0, 2), inplace=1, outofplace=0,
)  # fmt: skip


def alltoall(ranks: int, **head: object) -> str:
    """Every rank sends while it receives: right out of place only."""
    return xml(
        "alltoall", ranks,
        [[((r + d) % ranks, (r - d) % ranks, d - 1, [f"s i{(r + d) % ranks} o{r} 1", f"r i{r} o{(r - d) % ranks} 1"])
          for d in range(1, ranks)] + [(-1, -1, 0, [f"cpy i{r} o{r} 1"])] for r in range(ranks)],
        (ranks, ranks, 0), **{"nchannels": ranks - 1, "inplace": 0, "outofplace": 1, **head},
    )  # fmt: skip


def ring(ranks: int, **head: object) -> str:
    """The classic ring allreduce in one threadblock, with fused steps: 2R-1 of them."""
    blocks = []
    for r in range(ranks):
        at = [(r - k) % ranks for k in range(2 * ranks)]
        steps = [f"s i{at[0]} i{at[0]} 1"]
        steps += [f"rrs i{at[k]} i{at[k]} 1" for k in range(1, ranks - 1)]
        steps += [f"rrcs i{at[ranks - 1]} o{at[ranks - 1]} 1"]
        steps += [f"rcs o{at[k]} o{at[k]} 1" for k in range(ranks, 2 * ranks - 2)]
        steps += [f"r o{at[2 * ranks - 2]} o{at[2 * ranks - 2]} 1"]
        blocks.append([((r + 1) % ranks, (r - 1) % ranks, 0, steps)])
    return xml("allreduce", ranks, blocks, (ranks, ranks, 0), **{"name": "ring", "inplace": 1, "outofplace": 1, **head})


def written(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name
