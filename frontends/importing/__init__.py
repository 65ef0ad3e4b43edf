"""What the readers of machines' own files share: the network being read, figures, pasted text, the table of readers.

Input: the text of one or more files, and the figures that they lack. Output: an :class:`.model.Imported` network, or
all mistakes with their places. A reader sees only texts; it opens no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .formats import IMPORTS, recognized, sniff

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from .figures import Figures
    from .model import Imported

__all__ = ["IMPORTS", "MOST_BYTES", "read", "recognized", "sniff"]

#: The longest file that is imported; ibnetdiscover prints about 2 KB for each host.
MOST_BYTES = 64 << 20


def read(sources: Sequence[Source], figures: Figures | None = None, format: str | None = None) -> Imported:
    """Return the network in texts of one format, which is recognized from the first text if None.

    Raises CollcError with the mistakes: C0921 if no reader recognizes a text, C0922 for an unknown format, C0923 if a
    figure is needed that neither the text nor ``figures`` have, and the codes of the reader.
    """
    from .figures import Figures
    from .formats import reader, with_line_ends

    name = format or recognized(sources[0])
    found: Imported = reader(name, sources[0])([with_line_ends(one) for one in sources], figures or Figures())
    return found
