"""Reader of the links between GPUs of AMD, as text or JSON, as `rocm-smi --showtopo` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["completes", "read", "sniff"]

_TEXT = re.compile(
    r"\b(?:Weight|Hops|Link[\s|]+Type)[\s|]+between[\s|]+two[\s|]+GPUs\b|=[\s|]*Bandwidth[\s|]*=", re.IGNORECASE
)
_JSON = re.compile(r"\"\(Topology\) [\w ]{1,40} between DRM devices", re.IGNORECASE)
_KINDS = re.compile(r"\bLink[\s|]+Type[\s|]+between", re.IGNORECASE)


def sniff(head: str) -> bool:
    """Return whether a text begins like this format."""
    return bool(_has(_TEXT, head) or _JSON.search(head))


def completes(head: str) -> bool:
    """Return whether a text has no link types, so that it belongs to the tables of another text."""
    return not _has(_KINDS, head)


def _has(title: re.Pattern[str], head: str) -> bool:
    """Return whether a text has a title, which a terminal may have broken inside a word."""
    return bool(title.search(head) or title.search(head.replace("\n", "")))


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe: one machine, in tables or in one JSON text.

    Raises CollcError with the mistakes: C0924 for text that is not understood, C0923 if the model of the GPUs is
    missing, C0962 for tables without link types and bandwidths.
    """
    from ..importing.model import Draft
    from ..importing.xgmi import finished

    draft = Draft("rocm-smi")
    if sources[0].text.lstrip("\ufeff \t\r\n").startswith("{"):
        from ..importing.several import only
        from .document import read_document

        return finished(read_document(draft, only(sources, "JSON")), figures)
    from .text import read_text

    return finished(read_text(draft, sources), figures)
