"""Our own mistakes: an exception of their own, and the file that lets us replay one."""

from __future__ import annotations

from typing import Any

from collc.ir.diagnostic import CollcError, Diagnostic

__all__ = ["INTERNAL_STATUS", "InternalError"]

INTERNAL_STATUS = 70


class InternalError(CollcError):
    """The compiler itself failed, whatever the input. A CollcError too, so that a library's caller sees only one kind.

    ``ir`` is what the failing pass or target was given, ``remaining`` the pipeline from that pass on,
    ``target`` what was to be emitted; they are nothing where the failure was elsewhere.
    """

    def __init__(self, message: str, *, collective: str = "", ir: Any = None, remaining: str = "", target: str = ""):
        super().__init__(
            Diagnostic(
                "C0070", f"internal error: {message}",
                notes=("this is a mistake in collc, not in the input",),
            ),
            INTERNAL_STATUS,
        )  # fmt: skip
        self.message, self.collective = message, collective
        self.ir, self.remaining, self.target = ir, remaining, target

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.message, self.collective, self.ir, self.remaining, self.target)


def _restore(message: str, collective: str, ir: Any, remaining: str, target: str) -> InternalError:
    return InternalError(message, collective=collective, ir=ir, remaining=remaining, target=target)
