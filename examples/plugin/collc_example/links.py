"""An importer: a table of links, `from,to,GB/s`, one of two-way links a line."""

from collections.abc import Sequence
from fractions import Fraction

from collc.frontends.importing.figures import Figures
from collc.frontends.importing.model import Draft, Imported
from collc.frontends.importing.pasted import lines
from collc.ir.diagnostic import Source

_HEAD = "from,to,GB/s"


def sniff(head: str) -> bool:
    """Return whether a text begins like this format."""
    return head.lstrip().startswith(_HEAD)


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network of the tables; raise EX04 at each line that is no link."""
    draft = Draft("links-csv")
    for line in (line for source in sources for line in lines(source)):
        text = line.text.strip()
        if not text or text == _HEAD:
            continue
        cells = text.split(",")
        if len(cells) != 3 or not cells[2].isdecimal() or not int(cells[2]):
            draft.wrong("EX04", f"found no link `{_HEAD}`", line.span(), hint="write `n1,n2,25`")
            continue
        for name in cells[:2]:
            if name not in draft:
                draft.rank(name, line.span())
        draft.link(cells[0], cells[1], Fraction(cells[2]) * 10**9)
    return draft.finish()
