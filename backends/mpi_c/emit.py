"""The target: one C99 file with tables and engine, and one header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import ClassVar

import attrs

from collc.ir.program import Program
from collc.ir.verify import adds_once

from ..base import Artifact, Target, Window
from .names import chosen, comment, identifier
from .tables import several, tables

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
    selects: ClassVar[bool] = True

    function: str | None = attrs.field(default=None, metadata={"help": "the function's name in C"})

    def emit(self, ir: Program) -> Sequence[Artifact]:
        name = self._name(ir)
        return [
            Artifact(f"{name}.c", _source(name, ir, tables(ir)), "mpi-c"),
            Artifact(f"{name}.h", _header(name, [ir]), "mpi-c"),
        ]

    def emit_selected(self, parts: Sequence[tuple[Window, Program]]) -> Sequence[Artifact]:
        """Return one source and header of several algorithms: the function takes that of the call's bytes, the first
        for smaller calls than any, the last for larger ones; ``NAME_algorithm`` tells which.
        """
        programs = [program for _, program in parts]
        name = self._name(programs[0])
        body = several([(program, window.high) for window, program in parts])
        labels = ", ".join(f'"{window.algorithm}"' for window, _ in parts)
        body += f"\n/* Their names. */\nstatic const char *const algorithm_names[] = {{{labels}}};\n"
        source = _source(name, programs[0], body, among=len(parts))
        source += "\n" + template("algorithm.c").replace("NAME", name)
        return [
            Artifact(f"{name}.c", source.replace(_prototype(name), f"{_prototype(name)}\n{_teller(name)}", 1), "mpi-c"),
            Artifact(f"{name}.h", _header(name, programs, [window for window, _ in parts]), "mpi-c"),
        ]

    def _name(self, ir: Program) -> str:
        return chosen(self.function, _taken()) if self.function else identifier(ir.name, _taken())


@cache
def template(name: str) -> str:
    """Return a C file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _taken() -> frozenset[str]:
    """Return every identifier that the generated file uses itself."""
    text = "".join(template(f) for f in (*_ENGINE, "bind_allreduce.c", "entry.c", "algorithm.c"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    fixed = "call comm count op recv send type int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t"
    return frozenset(re.findall(r"[A-Za-z_]\w*", text)) | frozenset(fixed.split()) - {"NAME"}


def _describe(ir: Program, among: int = 1) -> str:
    c = ir.collective
    at = f" at rank {c.root}" if c.root is not None else ""
    made = f", scheduled by {comment(ir.scheduler)}" if ir.scheduler else ""
    made = made if among == 1 else f", by one of {among} algorithms"
    return f"{c.kind}{at} for communicators of {c.num_ranks} ranks{made}"


def _prototype(name: str) -> str:
    return _PROTOTYPE.format(name=name, space=" " * (len(name) - 3))


def _teller(name: str) -> str:
    return f"const char *{name}_algorithm(int count, MPI_Datatype type);"


def _source(name: str, ir: Program, data: str, among: int = 1) -> str:
    binding = template(f"bind_{ir.collective.kind.replace('-', '_')}.c")
    call, memory, step, run = (template(part) for part in _ENGINE)
    head = template("head.c").replace("@NAME@", name).replace("@WHAT@", _describe(ir, among))
    body = [data, call, memory, step, run, binding, template("entry.c").replace("NAME", name)]
    return "\n".join([head, _prototype(name), "", *(part.rstrip("\n") + "\n" for part in body)])


def _header(name: str, programs: Sequence[Program], windows: Sequence[Window] = ()) -> str:
    once = all(adds_once(ir) for ir in programs)
    need = "commutative" if once else "MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_LAND or MPI_LOR"
    text = template("header.h").replace("@OPS@", need).replace("@GUARD@", f"COLLC_{name.upper()}_H")
    meaning, declared = _binding_comment(programs[0]), _prototype(name)
    if windows:
        meaning += "\n *\n" + _algorithms(windows)
        declared += f"\n\n/* The algorithm of a call, or NULL where the arguments make no sense. */\n{_teller(name)}"
    text = text.replace("@SEMANTICS@", meaning).replace("@WHAT@", _describe(programs[0], max(len(windows), 1)))
    return text.replace("@PROTOTYPE@", declared).replace("@NAME@", name)


def _algorithms(windows: Sequence[Window]) -> str:
    """Return the lines of a comment that say which calls an algorithm is for, by the bytes of the whole vector."""
    ends = [f"up to {window.high} bytes" for window in windows[:-1]] + ["larger calls"]
    lines = [f" *   {end}: {window.algorithm}" for end, window in zip(ends, windows, strict=True)]
    return "\n".join([" * The bytes of the whole vector (all ranks' blocks together) choose the algorithm:", *lines])


def _binding_comment(ir: Program) -> str:
    """Return what the buffers are, as the binding's comment says it."""
    text = template(f"bind_{ir.collective.kind.replace('-', '_')}.c")
    return text[text.index("/*") + 3 : text.index("*/")].strip()
