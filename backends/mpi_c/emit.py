"""The target ``mpi-c``: a C99 file with tables and engine, and a header, for one collective or a library of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from collc.ir.collective import CUSTOM
from collc.ir.diagnostic import Kind, error
from collc.ir.roots import Roots
from collc.ir.symmetric_program import AnyProgram
from collc.ir.verify import Report

from ..base import Artifact, Limits, Target, Window
from .names import REQUEST_FORMS, chosen, forms, identifier, require_stem

if TYPE_CHECKING:
    from collc.ir.collective import Collective

    from .interpose import Served
    from .source import Function, Listing

__all__ = ["MpiC"]

Parts: TypeAlias = "tuple[tuple[Window | None, AnyProgram], ...]"


@attrs.frozen(eq=False)
class _Orbit:
    """The programs of one collective; with ``roots``, they are for one orbit of its roots."""

    parts: Parts
    roots: Roots | None = None


@attrs.frozen
class MpiC(Target):
    """C functions that perform a collective over MPI point-to-point messages, with MPI's own semantics.

    ``NAME.c`` is self-contained C99 (compile it with ``mpicc``), ``NAME.h`` declares the functions: ``NAME`` blocks,
    ``NAME_c`` takes large counts, ``NAME_begin`` and ``NAME_init`` make requests. They are named after the collective,
    changed if C needs it, unless ``function`` names another. With a ``library`` all collectives that are
    compiled together go into one source and one header of that name, with functions ``LIBRARY_NAME``.
    """

    name: ClassVar[str] = "mpi-c"
    summary: ClassVar[str] = "one C99 file and header over nonblocking MPI point-to-point"
    suffix: ClassVar[str] = ".c"
    level: ClassVar[str] = "program"
    selects: ClassVar[bool] = True
    takes_members: ClassVar[bool] = True

    function: str | None = attrs.field(default=None, metadata={"help": "name of the C function"})
    library: str | None = attrs.field(
        default=None, metadata={"help": "one source and one header for all collectives, with this name"}
    )
    interpose: bool = attrs.field(
        default=False, metadata={"help": "one source for LD_PRELOAD, for unmodified programs"}
    )
    min_bytes: int = attrs.field(default=0, metadata={"help": "interpose: the smallest vector served, in bytes"})
    max_bytes: int | None = attrs.field(
        default=None, metadata={"help": "interpose: the largest vector served, in bytes"}
    )
    #: the roots of the collective, if it has several, and the name of the files that their plans share
    _roots: Roots | None = attrs.field(default=None, eq=False, repr=False)
    _family: str | None = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        self._interposes()
        if self.library is not None and self.function is not None and not self.interpose:
            raise error(
                "C0720",
                f"option `function` names the only function, but the library `{self.library}` has several",
                hint="leave one of them out; the functions of a library have names LIBRARY_COLLECTIVE",
                exit_status=2,
                option="function",
            )

    @property
    def title(self) -> str:
        return f"{self.name} with `interpose`" if self.interpose else self.name

    @property
    def takes_relays(self) -> bool:
        """Whether relays may call: not in a library for unmodified programs, whose ranks call for their own data."""
        return not self.interpose

    @property
    def limits(self) -> Limits:
        """No limits; the C file of a symmetric program lists one rank."""
        return Limits(templates=True)

    def emit(self, ir: AnyProgram) -> Sequence[Artifact]:
        return self._files([self._orbit(((None, ir),))])

    def emit_selected(self, parts: Sequence[tuple[Window, AnyProgram]]) -> Sequence[Artifact]:
        """Return one source and header of several algorithms. The function chooses one by the bytes of the call.

        Smaller calls than all windows use the first, larger ones the last. ``NAME_algorithm`` returns the choice.
        """
        return self._files([self._orbit(tuple(parts))])

    def for_roots(self, roots: Roots, planned: int) -> MpiC:
        """Return the target whose function takes the root; plans of several orbits share its files."""
        alone = self.shared is not None or len(roots.planned) == 1
        return attrs.evolve(self, roots=roots, family=None if alone else roots.name)

    def _orbit(self, parts: Parts) -> _Orbit:
        return _Orbit(parts, self._roots)

    @property
    def shared(self) -> str | None:
        """Return the stem of the source that all collectives share; None if there is none."""
        if not self._interposes() and self.library is None:
            return None if self._family is None else self._family_name(self._family)
        from .interpose import INTERPOSED, interposing
        from .source import taken

        if self._interposes():
            return chosen(self.library or INTERPOSED, taken() | interposing())
        return chosen(str(self.library), taken())

    def join(self, mains: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the files of the library, given the main files of its collectives."""
        return self._files([artifact.part for artifact in mains])

    def check(self, ir: AnyProgram, artifacts: Sequence[Artifact]) -> Report:
        """Read source and header, decode the tables, compare all with the program, and execute the decoded programs.

        A C file does not have the size of a call, its operation (only whether contributions may count twice), its
        element type, or the program's own scratch: it lays out scratch anew, one cell for each chunk. Everything else
        is the program's. All text except names and numbers must be the shipped text.
        """
        return self._checked([self._orbit(((None, ir),))], artifacts)

    def check_selected(self, parts: Sequence[tuple[Window, AnyProgram]], artifacts: Sequence[Artifact]) -> Report:
        return self._checked([self._orbit(tuple(parts))], artifacts)

    def check_joined(self, mains: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        return self._checked([artifact.part for artifact in mains], artifacts)

    def require(self, collective: Collective) -> None:
        from .scratch import is_counted

        if self.interpose and is_counted(collective):
            self._require_pairs(collective)
        if self.shared is None and self.function is not None:
            from .source import taken

            chosen(self.function, taken(is_counted(collective)))

    def _require_pairs(self, collective: Collective) -> None:
        """Raise C0731 for a collective with counts that no neighbourhood collective of MPI is, and for its sizes."""
        from .interpose import exchanged_pairs

        if exchanged_pairs(collective) is None:
            pairs = "found another arrangement than one target for each shard, and one shard for each pair of ranks"
            raise error(
                "C0731", f"a library for unmodified programs serves no `{collective.name}`",
                notes=[pairs] if collective.kind == CUSTOM else [], hint="compile it without `interpose`",
                exit_status=2, kind=Kind.INFEASIBLE, option="interpose",
            )  # fmt: skip
        if self.min_bytes or self.max_bytes is not None:
            option = "min-bytes" if self.min_bytes else "max-bytes"
            raise error(
                "C0731", f"option `{option}` does not go with `{collective.name}`: ranks choose its algorithm before "
                "they know the sizes", hint=f"leave `{option}` out", exit_status=2, option=option,
            )  # fmt: skip

    def require_stem(self, stem: str) -> None:
        if not self.interpose:
            require_stem(stem)

    # ---- the files

    def _family_name(self, family: str) -> str:
        """Return the name of the function that takes the root, and of its files."""
        from .source import taken

        used = taken(rooted=True)
        return chosen(self.function, used) if self.function else identifier(family, used)

    def _files(self, collectives: Sequence[_Orbit]) -> Sequence[Artifact]:
        from .interpose import listed
        from .source import header, source

        prefix, functions = self._named(collectives)
        if self.interpose:
            text, listing = listed(prefix, self._served(functions))
            return [Artifact(f"{prefix}.c", text, "mpi-c", part=collectives[0], model=listing)]
        text, listing = source(prefix, functions)
        return [
            Artifact(f"{prefix}.c", text, "mpi-c", part=collectives[0], model=listing),
            Artifact(f"{prefix}.h", header(prefix, functions), "mpi-c"),
        ]

    def _checked(self, collectives: Sequence[_Orbit], artifacts: Sequence[Artifact]) -> Report:
        from .check import checked, checked_library

        prefix, functions = self._named(collectives)
        listing = _listing(prefix, tuple(functions), artifacts[0].model if artifacts else None)
        if self.interpose:
            return checked_library(listing, self._served(functions), artifacts)
        return checked(listing, artifacts)

    def _served(self, functions: Sequence[Function]) -> list[Served]:
        from .interpose import Served

        for function in functions:
            if function.counted:  # a pass may have made it another collective than the requested one
                self._require_pairs(function.first.collective)
        return [Served(function, self.min_bytes, self.max_bytes) for function in functions]

    def _named(self, collectives: Sequence[_Orbit]) -> tuple[str, list[Function]]:
        """Return the prefix of names, and the functions of some collectives."""
        from .interpose import interposing
        from .members import function_of, has_relays
        from .rooted import in_file
        from .scratch import is_counted
        from .source import listed_width, taken

        every = [one.parts for one in collectives]
        firsts = [parts[0][1] for parts in every]
        counted, relayed = any(is_counted(one.collective) for one in firsts), any(map(has_relays, every))
        rooted = in_file([(one.roots, of.collective.root) for one, of in zip(collectives, firsts, strict=True)])
        used = taken(counted, relayed, max(map(listed_width, every)), any(rooted))
        named = [of.name if one.roots is None else one.roots.name for one, of in zip(collectives, firsts, strict=True)]
        prefix = self.shared
        if prefix is None or (self.library is None and not self.interpose):
            name = chosen(self.function, used) if self.function else identifier(named[0], used)
            return name, [function_of(name, parts, of) for parts, of in zip(every, rooted, strict=True)]
        used = used | interposing() if self.interpose else used
        heads = [name for name, of in zip(named, rooted, strict=True) if of is None or of.is_head]
        names = iter(_distinct(prefix, heads, used))
        name, found = "", []
        for parts, of in zip(every, rooted, strict=True):
            name = next(names) if of is None or of.is_head else name
            found.append(function_of(name, parts, of))
        return prefix, found

    def _interposes(self) -> bool:
        """Return whether the target makes a library for LD_PRELOAD; raise C0731 for options that do not fit."""
        if self.interpose:
            from .interpose import require_range

            require_range(self.min_bytes, self.max_bytes)
        wrong = "function" if self.interpose and self.function is not None else None
        if not self.interpose and (self.min_bytes or self.max_bytes is not None):
            wrong = "min-bytes" if self.min_bytes else "max-bytes"
        if wrong is not None:
            what = "has no use with" if self.interpose else "needs"
            hint = "leave one of them out" if self.interpose else f"set `interpose` to true, or leave `{wrong}` out"
            message = f"option `{wrong}` of target `mpi-c` {what} `interpose`"
            raise error("C0731", message, hint=hint, exit_status=2, option=wrong)
        return self.interpose


def _listing(prefix: str, functions: tuple[Function, ...], model: object) -> Listing:
    """Return the listing of some functions: the artifact's ``model`` if it is theirs, else a new one."""
    from .source import Listing, numbers_of

    if isinstance(model, Listing) and model.functions == functions:
        return Listing(prefix, functions, model.numbers)
    return Listing(prefix, functions, numbers_of(functions))


def _distinct(prefix: str, names: Iterable[str], taken: frozenset[str] = frozenset()) -> list[str]:
    """Return distinct names for a library's functions; none is a form of another.

    >>> _distinct("pod", ["sum", "wait", "sum_c"])
    ['pod_sum', 'pod_wait_2', 'pod_sum_c_2']
    """
    used = {f"{prefix}_{name}" for name in REQUEST_FORMS}
    found = []
    for requested in names:
        base = identifier(f"{prefix}_{requested}", taken)
        name, number = base, 1
        while used & forms(name):
            number += 1
            name = f"{base}_{number}"
        used |= forms(name)
        found.append(name)
    return found
