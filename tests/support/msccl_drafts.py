"""Programs by hand for the writer of MSCCL-XML."""

from __future__ import annotations

import pytest

from collc.backends.msccl_xml import MscclXml
from collc.backends.msccl_xml.document import document
from collc.backends.msccl_xml.model import Algorithm
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program

I, O, S = Buffer  # noqa: E741


def emit(program: Program, **options: object) -> str:
    (artifact,) = MscclXml(**options).emit(program)  # type: ignore[arg-type]
    return artifact.text


def codes(failure: pytest.ExceptionInfo[CollcError]) -> list[str]:
    return [d.code for d in failure.value.diagnostics]


def local(rows: list[list[tuple[object, ...]]], chunks: int = 1, scratch: int = 40) -> Program:
    """A program of one rank: blocks without peers."""
    blocks = [(0, -1, -1, 0)] * len(rows)
    return Program.build(Collective("allreduce", 1), chunks, [scratch], blocks, rows)  # type: ignore[arg-type]


def copy(src: int, dst: int, *deps: int) -> tuple[object, ...]:
    return (Opcode.COPY, S, src, S, dst, 1, deps)


def drafted(program: Program) -> Algorithm:
    return document(program, coll="allreduce", proto="Simple", name="t")
