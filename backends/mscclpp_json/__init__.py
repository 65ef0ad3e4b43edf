"""One-sided program -> MSCCL++ execution plan (JSON), read back and executed by a model of the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collc.ir.later import imported_later

if TYPE_CHECKING:
    from .target import MscclppJson
    from .verify import verify_text

__all__ = ["MscclppJson", "verify_text"]

__getattr__ = imported_later(__name__, {"MscclppJson": "target", "verify_text": "verify"})
