"""The choice among an MPI library's own algorithms -> Open MPI's rules, or variables of UCC; both are read back."""

from __future__ import annotations

from .libraries import LIBRARIES, TITLES, Builtin, Entry, Library
from .openmpi import read_rules, rules_text
from .ucc import read_tune, tune_text

__all__ = [
    "LIBRARIES", "TITLES", "Builtin", "Entry", "Library", "read_rules", "read_tune", "rules_text", "tune_text",
]  # fmt: skip
