"""Program -> files, or Program -> a run.

Enters: a verified Program (or Schedule, for targets that describe one). Leaves: text artifacts, read back and executed
before they are believed. A backend knows only :mod:`collc.ir`. Listing the targets imports none of them.
"""

from __future__ import annotations

__all__ = ["TARGETS"]

#: name -> (module, class, one-line summary)
TARGETS: dict[str, tuple[str, str, str]] = {
    "msccl-xml": (
        "collc.backends.msccl_xml", "MscclXml", "MSCCL-XML for GPU runtimes: msccl, executor (NCCL), rccl",
    ),
    "mpi-c": ("collc.backends.mpi_c", "MpiC", "one C99 file and header over nonblocking MPI point-to-point"),
    "oneccl-xml": (
        "collc.backends.oneccl_xml", "OneCclXml", "oneCCL-XML: threads of steps for CPU ranks over oneCCL",
    ),
    "ir": ("collc.backends.ir_text", "IrText", "the textual IR of the final level"),
}  # fmt: skip
