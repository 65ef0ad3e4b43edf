"""The language as a format."""

from __future__ import annotations

import re
from typing import ClassVar

from collc.backends import TARGETS
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.levels import Executable
from collc.ir.spec import Spec
from collc.passes import SCHEDULERS

from ..registry.classes import pass_class, scheduler_pass
from . import FORMATS, refused, sniff
from .base import Reader, ReadOptions, Reports
from .loading import Loading

__all__ = ["CollReader", "load_spec"]

_WORDS = "topology|cluster|collective|together|schedule|emit|param|let|include"
#: comments and blank lines, then a declaration; a Python script begins by `import` too, without quotes
_DECLARATION = re.compile(rf"\ufeff?(?:\s|#[^\n]*+)*+(?:(?:{_WORDS})\b|import\s*\"|\Z)")


def load_spec(text: str, path: str, loading: Loading) -> Spec:
    """Return the specification in a ``.coll`` text; raise C0018 for a file of another format."""
    from collc.frontends import coll

    if "compile" not in FORMATS[found := sniff(text)].verbs:
        raise refused(found, path, "compile")

    spec = coll.load(
        path, text=text, params=loading.params, include_path=loading.include_path,
        node_limit=loading.node_limit, schedulers=SCHEDULERS, targets=TARGETS, topologies=loading.topologies,
        options=_owner,
    )  # fmt: skip
    _require_elements(spec)
    return spec


def _require_elements(spec: Spec) -> None:
    """Raise C0512 for all schedules that divide their data into more pieces than it has elements."""
    wrong: list[Diagnostic] = []
    for request in spec.collectives.values():
        name, options = request.schedule.scheduler, request.schedule.options
        if request.problem.collective.size is None or not any(type(option.value) is int for option in options):
            continue
        from collc.passes.elements import require_elements

        try:
            require_elements(pass_class(scheduler_pass(name)), name, options, request.problem.collective)
        except CollcError as failure:
            wrong += failure.diagnostics
    if wrong:
        raise CollcError(wrong)


def _owner(option: str) -> str | None:
    from ..registry.owners import option_owner  # imports all schedulers and targets

    return option_owner(option)


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
        reports, failures = verify_spec(spec, options.collective)
        failed = tuple((f.name, f.mistake) for f in failures)
        return Reports(tuple(reports.items()), tuple(spec.warnings), failed, tuple(spec.files))
