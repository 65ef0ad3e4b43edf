"""What a launch needs besides its command line, and where it is kept for the next launch.

Reading an entry imports neither numpy nor what compiles.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.diagnostic import Diagnostic
from collc.ir.frozen import frozen

from ..files.caches import LAUNCHES, read_launch, write_launch
from ..files.derived import Origins

__all__ = ["Launches", "Prepared"]


@frozen
class Prepared:
    """What compiled files became for a command.

    ``kind`` is that of the command: ``mpi``, ``torch`` or ``msccl``. ``variables`` are its environment. Programs of MPI
    preload ``library``, which is for ``mpi`` and serves the calls in ``served``. ``details`` are lines for ``-v``.
    ``warnings`` are in the groups in which they are printed. ``outputs`` are the files that the command loads.
    """

    kind: str
    variables: tuple[tuple[str, str], ...] = ()
    library: str = ""
    mpi: Mpi | None = None
    served: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    warnings: tuple[tuple[Diagnostic, ...], ...] = ()
    outputs: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it as JSON; raise TypeError if a warning holds something that has no text."""
        from ..driver.records import written

        facts = attrs.asdict(self, recurse=False)
        mpi = self.mpi and [str(self.mpi.folder), self.mpi.vendor, self.mpi.version]
        return json.dumps({**facts, "mpi": mpi, "warnings": written(self.warnings) if self.warnings else ""})

    @classmethod
    def of(cls, text: str) -> Prepared:
        """Return what :meth:`text` gave; raise ValueError for another text."""
        try:
            found = json.loads(text)
            folder, vendor, version = found["mpi"] or ("", "", "")
            return cls(
                found["kind"], tuple((name, value) for name, value in found["variables"]), found["library"],
                Mpi(Path(folder), vendor, version) if folder else None, tuple(found["served"]), tuple(found["details"]),
                _warnings(found["warnings"]), tuple(found["outputs"]),
            )  # fmt: skip
        except (KeyError, TypeError) as problem:
            raise ValueError(f"no record of a launch: {problem}") from None


def _warnings(text: str) -> tuple[tuple[Diagnostic, ...], ...]:
    if not text:
        return ()
    from ..driver.records import read

    found = read(text)
    if not isinstance(found, tuple) or not all(isinstance(one, Diagnostic) for group in found for one in group):
        raise ValueError("no record of warnings")
    return found


@frozen
class Launches:
    """The launches that a cache (a folder) keeps, by the digests of all that determines them."""

    cache: Path

    def read(self, key: str) -> Prepared | None:
        """Return what a launch needs if it is kept, whole, and of the same inputs; else None."""
        text = read_launch(str(self.cache), key)
        try:
            return None if text is None else Prepared.of(text)
        except ValueError:
            return None

    def write(self, key: str, prepared: Prepared, origins: Origins) -> bool:
        """Keep what a launch needs; return whether it is kept."""
        try:
            text = prepared.text()
        except TypeError:  # of a warning of a plugin
            return False
        return write_launch(str(self.cache), key, text, attrs.evolve(origins, outputs=prepared.outputs))

    @property
    def folder(self) -> str:
        """The folder of the entries."""
        return str(self.cache / LAUNCHES)
