"""The language as a format."""

from __future__ import annotations

import re
from typing import ClassVar

from collc.backends import TARGETS
from collc.ir.levels import Executable
from collc.ir.spec import Spec
from collc.passes import SCHEDULERS

from . import FORMATS, refused, sniff
from .base import Reader, ReadOptions, Reports
from .loading import Loading

__all__ = ["CollReader", "load_spec"]

_WORDS = "topology|collective|schedule|emit|param|let|include"
#: comments and blank lines, then a declaration
_DECLARATION = re.compile(rf"\ufeff?(?:\s|#[^\n]*+)*+(?:(?:{_WORDS})\b|\Z)")


def load_spec(text: str, path: str, loading: Loading) -> Spec:
    """Return the specification in a ``.coll`` text; raise C0018 for a file of another format."""
    from collc.frontends import coll

    if "compile" not in FORMATS[found := sniff(text)].verbs:
        raise refused(found, path, "compile")

    return coll.load(
        path, text=text, params=loading.params, include_path=loading.include_path,
        node_limit=loading.node_limit, schedulers=SCHEDULERS, targets=TARGETS, topologies=loading.topologies,
    )  # fmt: skip


class CollReader(Reader):
    """Reads ``.coll`` files; also texts with a mistyped first word that no other format recognizes."""

    name: ClassVar[str] = "coll"

    def sniff(self, text: str) -> bool:
        return _DECLARATION.match(text) is not None

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        return load_spec(text, path, options.loading), None

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        """Compile every collective, or those that the options name, and verify every level."""
        from ..driver.verification import verify_spec

        spec = load_spec(text, path, options.loading)
        names = [name for name in spec.collectives if not options.collective or name in options.collective]
        return Reports(tuple(zip(names, verify_spec(spec, options.collective), strict=False)), tuple(spec.warnings))
