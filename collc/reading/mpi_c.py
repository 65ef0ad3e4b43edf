"""C sources of the target ``mpi-c`` as a format."""

from __future__ import annotations

from typing import ClassVar

from .base import Reader, ReadOptions, Reports

__all__ = ["MpiCReader"]


class MpiCReader(Reader):
    """Reads the C files that collc writes, libraries for LD_PRELOAD too, to verify them."""

    name: ClassVar[str] = "mpi-c"

    def sniff(self, text: str) -> bool:
        from collc.backends.mpi_c.verify import is_source

        return is_source(text)

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        from collc.backends.mpi_c.verify import verify_source

        found = verify_source(text, path, options.loading.node_limit)
        return Reports(found if len(found) > 1 else tuple(("", report) for _, report in found))
