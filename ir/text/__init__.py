"""The textual IR: one readable, line-oriented form for every level, printed and parsed.

The first line is ``collc-ir 1``. Blocks follow, each after the blocks it needs: a topology, a collective, then the
schedule, forest or program. The last block is the level of the text. Tables of integers name their columns and
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

A schedule continues with its collective and a table of transfers; ``from`` and ``to`` are for the reader and may be
left out. Routes are ``direct`` (route r is link r) or a table of lists of links::

    collective allgather ranks 2 op sum dtype float32

    schedule {
      scheduler bfb
      parts 1
      discrete yes
      routes direct
      transfers 2: step action shard lo hi route from to {
        0 copy 0 0 1 0 0 1
        0 copy 1 0 1 1 1 0
      }
    }

A ``symmetric-schedule`` is written in the same way: its transfers are those of shard 0, and the topology's symmetry
makes of them those of all shards.

A program is ranks of threadblocks of numbered instructions, each with the locations that its opcode uses and the
instructions (``THREADBLOCK.STEP`` of its rank) that it waits for::

    program "grads" {
      scheduler bfb
      chunks 1
      rank 0 scratch 0 {
        threadblock 0 send 1 recv none channel 0 {
          0: send input 0 count 1
        }
        threadblock 1 send none recv 1 channel 0 {
          0: recv -> output 1 count 1
          1: copy input 0 -> output 0 count 1 after 0.0
        }
      }
      ...
    }
"""

from __future__ import annotations

from .parser import parse_ir
from .printer import print_ir

__all__ = ["parse_ir", "print_ir"]
