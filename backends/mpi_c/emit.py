"""The target: one C99 file with tables and engine, and one header; for one collective, or a library of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import attrs

from collc.ir.diagnostic import error
from collc.ir.program import Program
from collc.ir.verify import Report

from ..base import Artifact, Target, Window
from .check import checked, checked_library
from .interpose import INTERPOSED, Served, interposing, listed, require_range
from .names import REQUEST_FORMS, chosen, forms, identifier, require_stem
from .source import Function, Listing, header, numbers_of, source, taken

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
        return self._written([((None, ir),)])

    def emit_selected(self, parts: Sequence[tuple[Window, Program]]) -> Sequence[Artifact]:
        """Return one source and header of several algorithms: the function takes that of the call's bytes, the first
        for smaller calls than any, the last for larger ones; ``NAME_algorithm`` tells which.
        """
        return self._written([tuple(parts)])

    @property
    def shared(self) -> str | None:
        """Return the name of the one source that all collectives of a compile go to, if they do. Raises C0720."""
        if self._interposes():
            return chosen(self.library or INTERPOSED, taken() | interposing())
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
        return self._written([artifact.part for artifact in made])

    def check(self, ir: Program, artifacts: Sequence[Artifact]) -> Report:
        """Read source and header, decode the tables, compare all with the program, and execute what was decoded.

        A C file does not carry the size of a call, its operation (only whether contributions may count twice), its
        element type, nor the program's own scratch, which it lays out anew, one cell for one chunk. Everything else
        is the program's; all text of the file but names and numbers is what collc ships.
        """
        return self._checked([((None, ir),)], artifacts)

    def check_selected(self, parts: Sequence[tuple[Window, Program]], artifacts: Sequence[Artifact]) -> Report:
        return self._checked([tuple(parts)], artifacts)

    def check_joined(self, made: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        return self._checked([artifact.part for artifact in made], artifacts)

    def require_stem(self, stem: str) -> None:
        if not self.interpose:
            require_stem(stem)

    # ---- what is written

    def _written(self, collectives: Sequence[Parts]) -> Sequence[Artifact]:
        prefix, functions = self._named(collectives)
        if self.interpose:
            text, listing = listed(prefix, self._served(functions))
            return [Artifact(f"{prefix}.c", text, "mpi-c", part=collectives[0], model=listing)]
        text, listing = source(prefix, functions)
        return [
            Artifact(f"{prefix}.c", text, "mpi-c", part=collectives[0], model=listing),
            Artifact(f"{prefix}.h", header(prefix, functions), "mpi-c"),
        ]

    def _checked(self, collectives: Sequence[Parts], artifacts: Sequence[Artifact]) -> Report:
        prefix, functions = self._named(collectives)
        listing = _listing(prefix, tuple(functions), artifacts[0].model if artifacts else None)
        if self.interpose:
            return checked_library(listing, self._served(functions), artifacts)
        return checked(listing, artifacts)

    def _served(self, functions: Sequence[Function]) -> list[Served]:
        return [Served(function, self.min_bytes, self.max_bytes) for function in functions]

    def _named(self, collectives: Sequence[Parts]) -> tuple[str, list[Function]]:
        """Return what names begin with, and the functions of some collectives."""
        first = collectives[0][0][1]
        if self.shared is not None:
            used = taken() | interposing() if self.interpose else taken()
            names = _distinct(self.shared, [parts[0][1].name for parts in collectives], used)
            functions = [Function(name, parts) for name, parts in zip(names, collectives, strict=True)]
            return self.shared, functions
        name = chosen(self.function, taken()) if self.function else identifier(first.name, taken())
        return name, [Function(name, collectives[0])]

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


def _listing(prefix: str, functions: tuple[Function, ...], model: Any) -> Listing:
    """Return what files of some functions are to be written from: what came along with them, if it is theirs."""
    known = isinstance(model, Listing) and model.functions == functions
    return Listing(prefix, functions, model.numbers if known else numbers_of(functions))


def _distinct(prefix: str, names: Iterable[str], taken: frozenset[str] = frozenset()) -> list[str]:
    """Return names of a library's functions, none of which is another's or one of its forms.

    >>> _distinct("pod", ["sum", "wait", "sum_c"])
    ['pod_sum', 'pod_wait_2', 'pod_sum_c_2']
    """
    used = {f"{prefix}_{name}" for name in REQUEST_FORMS}
    found = []
    for wanted in names:
        base = identifier(f"{prefix}_{wanted}", taken)
        name, number = base, 1
        while used & forms(name):
            number += 1
            name = f"{base}_{number}"
        used |= forms(name)
        found.append(name)
    return found
