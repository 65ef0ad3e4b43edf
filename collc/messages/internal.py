"""Internal errors, of collc or of a plugin: their exception, and the file that reproduces one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from collc.ir.diagnostic import CollcError, Diagnostic, Kind, Span, error

if TYPE_CHECKING:
    from collc.ir.levels import Level

__all__ = ["INTERNAL_STATUS", "InternalError", "contained", "fault", "is_fatal", "memory_error"]

T = TypeVar("T")

INTERNAL_STATUS = 70


class InternalError(CollcError):
    """A failure of the compiler itself. It is a CollcError, so that callers of the API need only one kind.

    ``ir`` is the input of the failing pass or target, ``remaining`` the pipeline from that pass on. ``done`` are the
    names of the passes before it, ``target`` is the target of emission. All are None or empty for other failures.
    ``seen`` names the place where the failure appeared, if that was later; ``unverified``: ``ir`` itself may be wrong.
    ``package`` is the package of the plugin that brings the failing pass or target; None for collc's own.

    >>> failure = InternalError("pass `lower` failed")
    >>> failure.exit_status, failure.diagnostics[0].notes
    (70, ('this is a mistake in collc, not in the input',))
    """

    def __init__(
        self, message: str, *, collective: str = "", ir: Level | None = None,
        remaining: str = "", done: tuple[str, ...] = (),
        target: str = "", seen: str = "", unverified: bool = False, package: str | None = None,
    ):  # fmt: skip
        notes = [fault(package), *([f"it showed later: {seen}"] if seen else [])]
        wrong = Diagnostic("C0070", f"internal error: {message}", notes=tuple(notes), kind=Kind.INTERNAL)
        super().__init__(wrong, INTERNAL_STATUS)
        self.message, self.collective, self.seen = message, collective, seen
        self.ir, self.remaining, self.done, self.target, self.unverified = ir, remaining, done, target, unverified
        self.package = package

    def __reduce__(self) -> tuple[Callable[..., CollcError], tuple[object, ...]]:
        names = ("collective", "ir", "remaining", "done", "target", "seen", "unverified", "package")
        return _restore, (self.message, {name: getattr(self, name) for name in names})


# Any: the named arguments of InternalError
def _restore(message: str, more: dict[str, Any]) -> InternalError:
    return InternalError(message, **more)


def fault(package: str | None = None) -> str:
    """Return whose mistake an internal error is: a plugin's package's, or collc's own."""
    if package is None:
        return "this is a mistake in collc, not in the input"
    return f"this is a mistake in the package `{package}`, not in collc or the input"


def is_fatal(mistake: CollcError) -> bool:
    """Return whether a mistake says nothing about the attempt itself, so that the compilation must end."""
    return mistake.is_partly(Kind.MEMORY, Kind.INTERNAL)


def memory_error(what: str, span: Span | None = None) -> CollcError:
    """Return the error for a machine with less memory than ``what`` needs."""
    return error(
        "C0023",
        f"{what} needs more memory than there is",
        span=span,
        hint="use a smaller topology, or a machine with more memory",
        exit_status=3,
        kind=Kind.MEMORY,
    )


def contained(what: str, work: Callable[[], T]) -> T:
    """Return the result of ``work``, called ``what``; an exception that is no CollcError becomes one."""
    try:
        return work()
    except CollcError:
        raise
    except MemoryError:
        raise memory_error(f"`{what}`") from None
    except Exception as problem:
        raise InternalError(f"{what} failed: {type(problem).__name__}: {problem}") from problem
