"""MSCCL-XML: what GPU runtimes of the NCCL family execute; written, read back, and executed here.

Enters: a Program, or anyone's file. Leaves: one file for one runtime, or a Report of whether a file is what it
says. The way out is Program -> :mod:`.document` -> :mod:`.writer`, the way in :mod:`.reader` -> :mod:`.program`;
:mod:`.structure` and :mod:`.limits` stand in both. Nothing is believed for having been written here.
"""

from __future__ import annotations

from .model import Algorithm
from .program import Loaded, to_program
from .reader import read
from .target import MscclXml
from .verify import verify_text
from .writer import write

__all__ = ["Algorithm", "Loaded", "MscclXml", "read", "to_program", "verify_text", "write"]
