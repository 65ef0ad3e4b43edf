"""Program -> oneCCL-XML and back, with a reference executor in C++ on the real oneCCL."""

from __future__ import annotations

from .reader import is_oneccl, read, schema_text
from .target import OneCclXml
from .verify import load, verify_document, verify_text

__all__ = ["OneCclXml", "is_oneccl", "load", "read", "schema_text", "verify_document", "verify_text"]
