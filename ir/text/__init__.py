"""The textual IR: one readable, line-oriented form for every level, printed and parsed.

The first line is ``collc-ir 1``; blocks follow, each after what it needs: a topology, a collective, then the
schedule, forest or program. The last block is what the text means. Tables of integers name their columns and
their number of rows; enumerations are words, rationals ``p/q``, strings quoted. Outside of tables and
programs, lines that begin with ``#`` are comments.

>>> from collc.ir.topology import Topology
>>> print(print_ir(Topology.from_links("pair", 2, [(0, 1), (1, 0)])), end="")
collc-ir 1
<BLANKLINE>
topology "pair" {
  ranks 2
  unit link
  classes 1: bandwidth latency {
    1 0
  }
  links 2: src dst class {
    0 1 0
    1 0 0
  }
}
"""

from __future__ import annotations

from .parser import parse_ir
from .printer import print_ir

__all__ = ["parse_ir", "print_ir"]
