"""Our own mistakes: an exception of their own, and the file that lets us replay one."""

from __future__ import annotations

from typing import Any

from collc.ir.diagnostic import CollcError, Diagnostic, error

__all__ = ["INTERNAL_STATUS", "InternalError", "is_fatal", "memory_error"]

INTERNAL_STATUS = 70

#: what ends a compilation whatever was tried: it says nothing about what was tried, only about us and the machine
_FATAL = frozenset({"C0023", "C0070"})


class InternalError(CollcError):
    """The compiler itself failed, whatever the input. A CollcError too, so that a library's caller sees only one kind.

    ``ir`` is what the failing pass or target was given, ``remaining`` the pipeline from that pass on, ``done`` the
    names of the passes before it, ``target`` what was to be emitted; they are nothing where the failure was elsewhere.
    ``seen`` says where the failure showed, if that was later; ``unverified`` that ``ir`` may be wrong itself.
    """

    def __init__(
        self, message: str, *, collective: str = "", ir: Any = None, remaining: str = "", done: tuple[str, ...] = (),
        target: str = "", seen: str = "", unverified: bool = False,
    ):  # fmt: skip
        notes = ["this is a mistake in collc, not in the input", *([f"it showed later: {seen}"] if seen else [])]
        super().__init__(Diagnostic("C0070", f"internal error: {message}", notes=tuple(notes)), INTERNAL_STATUS)
        self.message, self.collective, self.seen = message, collective, seen
        self.ir, self.remaining, self.done, self.target, self.unverified = ir, remaining, done, target, unverified

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("collective", "ir", "remaining", "done", "target", "seen", "unverified")
        return _restore, (self.message, {name: getattr(self, name) for name in names})


def _restore(message: str, more: dict[str, Any]) -> InternalError:
    return InternalError(message, **more)


def is_fatal(mistake: CollcError) -> bool:
    """Return whether a mistake decides nothing about what was tried: nobody may go on as if it had answered."""
    return any(d.code in _FATAL for d in mistake.diagnostics)


def memory_error(what: str, span: Any = None) -> CollcError:
    """Return the mistake of a machine that has less memory than ``what`` needs."""
    return error(
        "C0023",
        f"{what} needs more memory than there is",
        span=span,
        hint="use a smaller topology, or a machine with more memory",
        exit_status=3,
    )
