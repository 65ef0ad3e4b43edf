"""Verifies a file: reads it, checks its rules, and executes it."""

from __future__ import annotations

from collc.ir.diagnostic import CollcError, Diagnostic, Severity, error
from collc.ir.program import Program
from collc.ir.verify import Check, Report, verify_program

from .model import Document
from .program import located, to_program
from .reader import read
from .rendezvous import blocked_steps
from .rules import broken_rules

__all__ = ["load", "verify_document", "verify_text"]

_SHOWN = 3


def verify_text(text: str, path: str = "<xml>") -> Report:
    """Return the report on an oneCCL-XML text.

    Checks ``rules`` and ``rendezvous``, then those of :func:`collc.ir.verify.verify_program` for the uses that the
    flags name, in place and out of place. Raises CollcError if the text is not valid (see :func:`.reader.read`).
    """
    return verify_document(read(text, path))


def verify_document(document: Document) -> Report:
    """Return the report on a document that is valid against the schema."""
    kind, ranks = document.collective.kind, len(document.ranks)
    if found := broken_rules(document):
        more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        detail = "; ".join([*map(str, found[:_SHOWN]), *more])
        return Report("oneccl-xml", kind, ranks, (Check("rules", False, detail),))
    checks = [Check("rules", True, "R1 to R10 and R12 to R16 hold")]
    waits = blocked_steps(document)
    checks.append(Check("rendezvous", not waits, waits or "every step ends although no message is buffered (R11)"))
    modes = [mode for mode, used in ((True, document.inplace), (False, document.outofplace)) if used]
    report = verify_program(located(document), inplace=modes[0] if len(modes) == 1 else None)
    return Report("oneccl-xml", kind, ranks, (*checks, *report.checks))


def load(text: str, path: str = "<xml>") -> tuple[Document, Program]:
    """Return a file that is correct in the uses it names, and its program.

    Raises what :func:`.reader.read` raises, C0756 for a broken rule and C0757 if the file is wrong.
    """
    document = read(text, path)
    if found := broken_rules(document):
        raise CollcError(
            [Diagnostic("C0756", f"`{path}`, {one}", Severity.ERROR, None, (), None) for one in found[:20]]
        )
    report = verify_document(document)
    if not report.ok:
        notes = [f"{check.name}: {check.detail}" for check in report.failed]
        raise error("C0757", f"the algorithm in `{path}` is wrong", notes=notes)
    return document, to_program(document)
