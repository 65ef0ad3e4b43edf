"""What ranks complain of."""

from __future__ import annotations

import re


def complaints(log: str) -> list[str]:
    """Return valgrind's records in which generated code takes part."""
    records = re.split(r"\n==\d+== *\n", re.sub(r"(?m)^--.*\n", "", log))
    return [record for record in records if re.search(r"\(pod\.c:\d+\)", record)]
