"""Reader of the links between GPUs of AMD, as text, JSON or CSV, as `amd-smi topology` prints or writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["completes", "read", "sniff"]

_TEXT = re.compile(r"\b(?:ACCESS|WEIGHT|HOPS|LINK[\s|]+TYPE|NUMA[\s|]+BW)[\s|]+TABLE\b")
_JSON = re.compile(r"\"(?:link_type|num_hops|link_accessibility|numa_bandwidth)\"\s*:")
_KINDS = re.compile(r"\bLINK[\s|]+TYPE[\s|]+TABLE\b|\"link_type\"|\blink_type_gpu_")
_CSV = re.compile(r"\bgpu,[^\n]*_gpu_\d")


def sniff(head: str) -> bool:
    """Return whether a text begins like this format."""
    return bool(_TEXT.search(head) or (head.lstrip()[:1] in ("[", "{") and _JSON.search(head)) or _CSV.search(head))


def completes(head: str) -> bool:
    """Return whether a text has no link types, so that it belongs to the tables of another text."""
    return not _KINDS.search(head)


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe: one machine, in tables, or in one JSON text or CSV.

    Raises CollcError with the mistakes: C0924 for text that is not understood, C0923 if the model of the GPUs is
    missing, C0962 for tables without link types and bandwidths.
    """
    from ..importing.model import Draft
    from ..importing.xgmi import finished

    draft = Draft("amd-smi")
    text = sources[0].text.lstrip("\ufeff \t\r\n")
    if text.startswith(("[", "{")):
        from ..importing.several import only
        from .document import read_json

        return finished(read_json(draft, only(sources, "JSON")), figures)
    if _CSV.search(text):
        from .document import read_csv

        return finished(read_csv(draft, sources), figures)
    from .text import read_text

    return finished(read_text(draft, sources), figures)
