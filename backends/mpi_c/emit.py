"""The target: one C99 file with tables and engine, and one header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import ClassVar

import attrs

from collc.ir.program import Program

from ..base import Artifact, Target
from .names import chosen, comment, identifier
from .tables import tables

__all__ = ["MpiC"]

_ENGINE = ("engine_call.c", "engine_memory.c", "engine_step.c", "engine_run.c")

_PROTOTYPE = """\
int {name}(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
        {space}MPI_Comm comm);"""


@attrs.frozen
class MpiC(Target):
    """A C function that performs the collective over MPI point-to-point messages, with MPI's own semantics.

    ``NAME.c`` is self-contained C99 (compile it with ``mpicc``), ``NAME.h`` declares the function. The function is
    named after the collective, changed where C needs it, unless ``name`` says otherwise.
    """

    name: ClassVar[str] = "mpi-c"
    summary: ClassVar[str] = "one C99 file and header over nonblocking MPI point-to-point"
    suffix: ClassVar[str] = ".c"
    level: ClassVar[str] = "program"

    function: str | None = attrs.field(default=None, metadata={"help": "the function's name in C"})

    def emit(self, ir: Program) -> Sequence[Artifact]:
        name = chosen(self.function, _taken()) if self.function else identifier(ir.name, _taken())
        return [
            Artifact(f"{name}.c", _source(name, ir), "mpi-c"),
            Artifact(f"{name}.h", _header(name, ir), "mpi-c"),
        ]


@cache
def template(name: str) -> str:
    """Return a C file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _taken() -> frozenset[str]:
    """Return every identifier that the generated file uses itself."""
    text = "".join(template(f) for f in (*_ENGINE, "bind_allreduce.c", "entry.c"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    fixed = "call comm count op recv send type int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t"
    return frozenset(re.findall(r"[A-Za-z_]\w*", text)) | frozenset(fixed.split()) - {"NAME"}


def _describe(ir: Program) -> str:
    c = ir.collective
    at = f" at rank {c.root}" if c.root is not None else ""
    made = f", scheduled by {comment(ir.scheduler)}" if ir.scheduler else ""
    return f"{c.kind}{at} for communicators of {c.num_ranks} ranks{made}"


def _prototype(name: str) -> str:
    return _PROTOTYPE.format(name=name, space=" " * (len(name) - 3))


def _source(name: str, ir: Program) -> str:
    binding = template(f"bind_{ir.collective.kind.replace('-', '_')}.c")
    call, memory, step, run = (template(part) for part in _ENGINE)
    head = template("head.c").replace("@NAME@", name).replace("@WHAT@", _describe(ir))
    body = [tables(ir), call, memory, step, run, binding, template("entry.c").replace("NAME", name)]
    return "\n".join([head, _prototype(name), "", *(part.rstrip("\n") + "\n" for part in body)])


def _header(name: str, ir: Program) -> str:
    text = template("header.h").replace("@GUARD@", f"COLLC_{name.upper()}_H")
    text = text.replace("@SEMANTICS@", _binding_comment(ir)).replace("@WHAT@", _describe(ir))
    return text.replace("@PROTOTYPE@", _prototype(name)).replace("@NAME@", name)


def _binding_comment(ir: Program) -> str:
    """Return what the buffers are, as the binding's comment says it."""
    text = template(f"bind_{ir.collective.kind.replace('-', '_')}.c")
    return text[text.index("/*") + 3 : text.index("*/")].strip()
