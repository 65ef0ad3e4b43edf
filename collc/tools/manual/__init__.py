"""Manual pages of the command and of each verb, from the tables that ``--help`` prints.

``python -m collc.tools.manual -o collc/share/man`` writes the pages that are shipped.
"""

from __future__ import annotations

from .pages import pages, write_pages

__all__ = ["pages", "write_pages"]
