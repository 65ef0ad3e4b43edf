"""The kinds of collectives and their options, by their names in the language."""

from __future__ import annotations

from collc.ir.collective import CUSTOM, KINDS, ROOTED, UNEVEN

__all__ = ["DEFAULTS", "DTYPES", "EVEN", "MATRIX", "NEIGHBOURS", "OPTIONS", "PREDEFINED", "ROOTED_KINDS"]

#: The kind in which every rank has a shard for each link to another.
NEIGHBOURS = "neighbours"
#: All kinds that the language names itself.
PREDEFINED = (*KINDS, *UNEVEN.values(), CUSTOM, NEIGHBOURS)
#: uneven kind -> the kind whose shards are equal
EVEN = {uneven: kind for kind, uneven in UNEVEN.items()}
#: The kinds with a root.
ROOTED_KINDS = tuple(kind for kind in PREDEFINED if EVEN.get(kind, kind) in ROOTED)
#: The kind that has a matrix in place of weights.
MATRIX = UNEVEN["alltoall"]
#: The options of collectives.
OPTIONS = ("size", "op", "dtype", "root", "weights", "matrix", "pre", "post")
#: What follows `with` -> its meaning.
DEFAULTS = {
    "bandwidth": "bandwidth of every link that has none of its own", "latency": "latency of every such link",
    "reduction": "bytes that a rank adds per second", "launch": "time of a call besides its steps",
}  # fmt: skip
#: The types of elements.
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
