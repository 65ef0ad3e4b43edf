"""The target: one C99 file with tables and engine, and one header; for one collective, or a library of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.program import Program

from ..base import Artifact, Target, Window
from .interpose import INTERPOSED, Served, interposed, require_range
from .names import chosen, identifier
from .source import REQUEST_FUNCTIONS, Function, header, source, taken

__all__ = ["MpiC"]

Parts = tuple[tuple[Window | None, Program], ...]


@attrs.frozen
class MpiC(Target):
    """C functions that perform a collective over MPI point-to-point messages, with MPI's own semantics.

    ``NAME.c`` is self-contained C99 (compile it with ``mpicc``), ``NAME.h`` declares the functions: ``NAME`` blocks,
    ``NAME_c`` takes large counts, ``NAME_begin`` and ``NAME_init`` make requests. They are named after the collective,
    changed where C needs it, unless ``function`` says otherwise. With a ``library`` all collectives that are
    compiled together become one source and one header of that name, and functions ``LIBRARY_NAME``.
    """

    name: ClassVar[str] = "mpi-c"
    summary: ClassVar[str] = "one C99 file and header over nonblocking MPI point-to-point"
    suffix: ClassVar[str] = ".c"
    level: ClassVar[str] = "program"
    selects: ClassVar[bool] = True

    function: str | None = attrs.field(default=None, metadata={"help": "the function's name in C"})
    library: str | None = attrs.field(
        default=None, metadata={"help": "one source and header of all collectives, with this name"}
    )
    interpose: bool = attrs.field(
        default=False, metadata={"help": "one source for LD_PRELOAD, which serves programs that stay as they are"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "interpose: the smallest vector served, in bytes"})
    max_bytes: int | None = attrs.field(
        default=None, metadata={"help": "interpose: the largest vector served, in bytes"}
    )

    def emit(self, ir: Program) -> Sequence[Artifact]:
        return self._files(((None, ir),))

    def emit_selected(self, parts: Sequence[tuple[Window, Program]]) -> Sequence[Artifact]:
        """Return one source and header of several algorithms: the function takes that of the call's bytes, the first
        for smaller calls than any, the last for larger ones; ``NAME_algorithm`` tells which.
        """
        return self._files(tuple(parts))

    @property
    def shared(self) -> str | None:
        """Return the name of the one source that all collectives of a compile go to, if they do. Raises C0720."""
        if self._interposes():
            return chosen(self.library or INTERPOSED, taken())
        if self.library is not None and self.function is not None:
            raise error(
                "C0720",
                f"`function={self.function}` names the one function, `library={self.library}` holds several",
                hint="leave one of them out; functions of a library are called LIBRARY_COLLECTIVE",
                exit_status=2,
            )
        return None if self.library is None else chosen(self.library, taken())

    def join(self, made: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the library's files, of the main files of its collectives."""
        return self._written(self._prefix(), [artifact.part for artifact in made])

    # ---- what is written

    def _files(self, parts: Parts) -> Sequence[Artifact]:
        if self.shared is not None:
            return self._written(self._prefix(), [parts])
        ir = parts[0][1]
        name = chosen(self.function, taken()) if self.function else identifier(ir.name, taken())
        return _artifacts(name, [Function(name, parts)], parts)

    def _prefix(self) -> str:
        return self.shared or ""

    def _written(self, prefix: str, collectives: Sequence[Parts]) -> Sequence[Artifact]:
        names = _distinct(prefix, [parts[0][1].name for parts in collectives])
        functions = [Function(name, parts) for name, parts in zip(names, collectives, strict=True)]
        if self.interpose:
            text = interposed(prefix, [Served(function, self.min_bytes, self.max_bytes) for function in functions])
            return [Artifact(f"{prefix}.c", text, "mpi-c", part=collectives[0])]
        return _artifacts(prefix, functions, collectives[0])

    def _interposes(self) -> bool:
        """Whether a library for LD_PRELOAD is wanted; raise C0731 for options that do not fit."""
        if self.interpose:
            require_range(self.min_bytes, self.max_bytes)
        wrong = "function" if self.interpose and self.function is not None else None
        if not self.interpose and (self.min_bytes or self.max_bytes is not None):
            wrong = "min-bytes" if self.min_bytes else "max-bytes"
        if wrong is not None:
            what = "has no use with" if self.interpose else "is for"
            hint = "leave one of them out" if self.interpose else "add `interpose=true`, or leave it out"
            raise error("C0731", f"`{wrong}` {what} `interpose` of mpi-c", hint=hint, exit_status=2)
        return self.interpose


def _artifacts(prefix: str, functions: Sequence[Function], parts: Parts) -> list[Artifact]:
    return [
        Artifact(f"{prefix}.c", source(prefix, functions), "mpi-c", part=parts),
        Artifact(f"{prefix}.h", header(prefix, functions), "mpi-c"),
    ]


def _distinct(prefix: str, names: Iterable[str]) -> list[str]:
    """Return names of a library's functions, none of which is another's or one of its forms.

    >>> _distinct("pod", ["sum", "wait", "sum_c"])
    ['pod_sum', 'pod_wait_2', 'pod_sum_c_2']
    """
    used = {f"{prefix}_{name}" for name in REQUEST_FUNCTIONS}
    found = []
    for wanted in names:
        base = identifier(f"{prefix}_{wanted}", taken())
        name, number = base, 1
        while used & _forms(name):
            number += 1
            name = f"{base}_{number}"
        used |= _forms(name)
        found.append(name)
    return found


def _forms(name: str) -> set[str]:
    return {name, *(f"{name}_{form}" for form in ("c", "begin", "init", "algorithm"))}
