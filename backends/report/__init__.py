"""The target ``report``: one HTML page that shows what was compiled, without network access or server."""

from __future__ import annotations

from .target import HtmlReport

__all__ = ["HtmlReport"]
