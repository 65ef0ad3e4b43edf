"""An algorithm from a file, ready for conversion: checked, executed, with the claims of the file."""

from __future__ import annotations

import attrs

from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, Diagnostic, error, warning
from collc.ir.program import Program
from collc.ir.verify import Check

from .both_ways import with_both_uses
from .execution import data_checks, mode_name
from .limits import check_limits
from .model import Algorithm
from .profiles import PROFILES, Profile
from .program import collective_of, to_program
from .reader import read
from .structure import check_structure
from .verify import likely_roots
from .windows import UNBOUNDED, size_limit

__all__ = ["Published", "publish"]

_SHOWN = 4


@attrs.frozen(eq=False)
class Published:
    """A file's algorithm and program, and its uses (in place, out of place).

    The program is correct in the uses ``correct``. The file also claims the uses ``confirmed``. One chunk of the file
    is ``scale`` chunks of the program. ``warnings`` name the false claims of the file.
    """

    algorithm: Algorithm
    program: Program
    correct: tuple[bool, bool]
    confirmed: tuple[bool, bool]
    scale: int = 1
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def runtime(self) -> Profile:
        """The runtime of the file: the first one that accepts it, else the one with its attributes."""
        return _written_for(self.algorithm)

    @property
    def both_ways(self) -> Program:
        """The program if it is correct in both uses, else a program made of it that is."""
        return self.program if all(self.correct) else with_both_uses(self.program, inplace=self.correct[0])

    @property
    def smallest(self) -> int:
        """The smallest call that the file is for, in bytes."""
        return max(self.algorithm.min_bytes or 0, 0)

    @property
    def largest(self) -> int | None:
        """The largest call that the file is for, in bytes; None if there is none."""
        found = size_limit(self.algorithm, self.runtime)
        return None if found is None or found >= UNBOUNDED else found

    @property
    def options(self) -> dict[str, object]:
        """The attributes of the file as options of :class:`.target.MscclXml`, by field name."""
        return {
            "proto": self.algorithm.proto,
            "min_bytes": self.smallest,
            "max_bytes": self.largest,
            "inplace": self.confirmed[0],
            "outofplace": self.confirmed[1],
        }


def publish(text: str, path: str = "<xml>", *, collective: str | None = None, root: int | None = None) -> Published:
    """Read and execute an MSCCL-XML text, and return its algorithm. It does not have to fit a runtime.

    ``collective`` is the collective of a file that does not name it. ``root`` is the root for which the file must be
    correct (default: any root). Raises what :func:`.reader.read` raises, C0608, C0204 for an invalid root, and C0640 if
    the algorithm is wrong in all the uses that the file claims.
    """
    algorithm = read(text, path)
    found = check_structure(algorithm)
    if found:
        raise _wrong(path, [Check(f.check, False, f.message) for f in found])
    claimed = _claimed_uses(algorithm)
    failed: list[Check] = []
    for candidate in _candidates(algorithm, collective, root):
        loaded = to_program(algorithm, candidate)
        program = loaded.program
        checks = [[c for c in data_checks(program, [mode]) if not c.ok] for mode in (True, False)]
        correct = (not checks[0], not checks[1])
        confirmed = correct[0] and claimed[0], correct[1] and claimed[1]
        if any(confirmed):
            return Published(algorithm, program, correct, confirmed, loaded.scale, _false_claims(path, claimed, checks))
        failed = failed or [c for mode, wrong in zip(claimed, checks, strict=True) if mode for c in wrong]
    raise _wrong(path, failed)


def _candidates(algorithm: Algorithm, kind: str | None, root: int | None) -> list[Collective]:
    """Return the collectives that the file may perform: without a given root, one for each root."""
    first = collective_of(algorithm, kind, 0 if root is None else root)
    if first.root is None and root is not None:
        raise error("C0203", f"collective `{first.kind}` has no root", exit_status=2)
    if first.root is None or root is not None:
        return [first]
    return [collective_of(algorithm, kind, rank) for rank in likely_roots(algorithm, kind)]


def _claimed_uses(algorithm: Algorithm) -> tuple[bool, bool]:
    """Return the uses that the flags name, in place and out of place; both if they name none."""
    if algorithm.outofplace is None:
        return bool(algorithm.inplace), not algorithm.inplace
    found = bool(algorithm.inplace), bool(algorithm.outofplace)
    return found if any(found) else (True, True)


def _written_for(algorithm: Algorithm) -> Profile:
    """Return the first runtime that accepts the file, else the one whose attributes the file has."""
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
        "C0640", f"the algorithm in `{path}` is wrong, so collc cannot convert it", notes=[*shown, *more],
        hint="`collc verify` lists all failures",
    )  # fmt: skip


def _false_claims(path: str, claims: tuple[bool, bool], checks: list[list[Check]]) -> tuple[Diagnostic, ...]:
    found = []
    for mode, claimed, wrong in zip((True, False), claims, checks, strict=True):
        if claimed and wrong:
            what = f"`{path}` claims to be correct {mode_name(mode)}, but it is not: the result excludes such calls"
            found.append(warning("C0641", what, notes=[f"{wrong[0].name}: {wrong[0].detail}"]))
    return tuple(found)
