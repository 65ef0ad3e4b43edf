"""Which worker of xdist runs which tests."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling

__all__ = ["ModuleScheduling"]


class ModuleScheduling(LoadGroupScheduling):
    """Gives a worker all tests of a need, or of a module: what they share is computed once."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]
