"""An algorithm that came as a file, made ready to become something else: judged, executed, its claims kept."""

from __future__ import annotations

from typing import Any

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error, warning
from collc.ir.program import Program
from collc.ir.verify import Check

from .both_ways import made_both_ways
from .execution import data_checks, mode_name
from .limits import check_limits
from .model import Algorithm
from .profiles import PROFILES, Profile
from .program import collective_of, to_program
from .reader import read
from .structure import check_structure
from .verify import likely_roots
from .windows import ENDLESS, size_limit

__all__ = ["Published", "publish"]

_SHOWN = 4


@attrs.frozen(eq=False)
class Published:
    """A file's algorithm and program, and for which uses, (in place, out of place), it is right and meant.

    ``scale`` of the program's chunks are one of the file's. ``warnings`` say what the file claims and is not so.
    """

    algorithm: Algorithm
    program: Program
    right: tuple[bool, bool]
    meant: tuple[bool, bool]
    scale: int = 1
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def runtime(self) -> Profile:
        """The runtime that the file was written for: the first that takes it, of those that read what it says."""
        return _written_for(self.algorithm)

    @property
    def both_ways(self) -> Program:
        """The program where it is right in place and out of place, else one made of it that is."""
        return self.program if all(self.right) else made_both_ways(self.program, inplace=self.right[0])

    @property
    def options(self) -> dict[str, Any]:
        """What the file says of itself, as options of :class:`.target.MscclXml` by field name."""
        largest = size_limit(self.algorithm, self.runtime)
        return {
            "proto": self.algorithm.proto,
            "min_bytes": max(self.algorithm.min_bytes or 0, 0),
            "max_bytes": None if largest is None or largest >= ENDLESS else largest,
            "inplace": self.meant[0],
            "outofplace": self.meant[1],
        }


def publish(text: str, path: str = "<xml>", *, collective: str | None = None, root: int | None = None) -> Published:
    """Return what an MSCCL-XML text holds, executed; no runtime need be able to load it.

    ``collective`` says what a file performs that does not name it, ``root`` the root where the file must be right for
    that one. Raises what :func:`.reader.read` raises, C0608, C0204 for a root that is no rank, and C0640 where the
    algorithm is not right in any of the uses it is for.
    """
    algorithm = read(text, path)
    found = check_structure(algorithm)
    if found:
        raise _wrong(path, [Check(f.check, False, f.message) for f in found])
    meant = _meant(algorithm)
    failed: list[Check] = []
    for performed in _performed(algorithm, collective, root):
        loaded = to_program(algorithm, performed)
        program = loaded.program
        checks = [[c for c in data_checks(program, [mode]) if not c.ok] for mode in (True, False)]
        right = (not checks[0], not checks[1])
        if (right[0] and meant[0]) or (right[1] and meant[1]):
            kept = right[0] and meant[0], right[1] and meant[1]
            return Published(algorithm, program, right, kept, loaded.scale, _overclaims(path, meant, checks))
        failed = failed or [c for mode, wrong in zip(meant, checks, strict=True) if mode for c in wrong]
    raise _wrong(path, failed)


def _performed(algorithm: Algorithm, told: str | None, root: int | None) -> list[Collective]:
    """Return the collectives that the file may perform: one for each root where no root is given."""
    first = collective_of(algorithm, told, 0 if root is None else root)
    if first.root is None and root is not None:
        raise error("C0203", f"collective `{first.kind}` has no root", exit_status=2)
    if first.root is None or root is not None:
        return [first]
    return [collective_of(algorithm, told, rank) for rank in likely_roots(algorithm, told)]


def _meant(algorithm: Algorithm) -> tuple[bool, bool]:
    """Return the uses, in place and out of place, that the flags name; where they name none, both."""
    if algorithm.outofplace is None:
        return bool(algorithm.inplace), not algorithm.inplace
    found = bool(algorithm.inplace), bool(algorithm.outofplace)
    return found if any(found) else (True, True)


def _written_for(algorithm: Algorithm) -> Profile:
    """Return the first runtime that takes the file; of a file that none takes, the one whose attributes it has."""
    oldest_last = [PROFILES[name] for name in ("executor", "rccl", "msccl")]
    for profile in oldest_last:
        if not check_limits(algorithm, profile):
            return profile
    stated = (algorithm.outofplace, algorithm.min_bytes, algorithm.max_bytes)
    lacks = any(value is None for value in stated) or algorithm.coll == PROFILES["msccl"].spellings["reduce-scatter"]
    return PROFILES["msccl" if lacks else "executor"]


def _wrong(path: str, checks: list[Check]) -> CollcError:
    shown = [f"{check.name}: {check.detail}" for check in checks[:_SHOWN]]
    more = [f"and {len(checks) - _SHOWN} more"] if len(checks) > _SHOWN else []
    return error(
        "C0640", f"`{path}` is not a right algorithm, so nothing can be made of it", notes=[*shown, *more],
        hint="`collc verify` says all that is wrong",
    )  # fmt: skip


def _overclaims(path: str, meant: tuple[bool, bool], checks: list[list[Check]]) -> tuple[Diagnostic, ...]:
    found = []
    for mode, claimed, wrong in zip((True, False), meant, checks, strict=True):
        if claimed and wrong:
            what = f"`{path}` claims to be right {mode_name(mode)}, which it is not: what is made of it is not used so"
            found.append(warning("C0641", what, notes=[f"{wrong[0].name}: {wrong[0].detail}"]))
    return tuple(found)
