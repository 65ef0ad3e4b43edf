"""MSCCL-XML, which GPU runtimes of the NCCL family execute. This package writes, reads and executes such files.

Enters: a Program, or a file of any tool. Leaves: one file for one runtime, or a Report on a file. Writing goes from a
Program through :mod:`.document` to :mod:`.writer`, reading from :mod:`.reader` to :mod:`.program`. Both use
:mod:`.structure` and :mod:`.limits`. The reader and the checks do not trust the writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.later import imported_later

if TYPE_CHECKING:
    from .model import Algorithm
    from .program import Loaded, to_program
    from .reader import read
    from .target import MscclXml
    from .verify import verify_text
    from .writer import write

__all__ = ["Algorithm", "Loaded", "MscclXml", "read", "to_program", "verify_text", "write"]

__getattr__ = imported_later(__name__, {
    "Algorithm": "model", "Loaded": "program", "MscclXml": "target", "read": "reader", "to_program": "program",
    "verify_text": "verify", "write": "writer",
})  # fmt: skip
