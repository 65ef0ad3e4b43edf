"""``collc explain``."""

from __future__ import annotations

from types import SimpleNamespace

from ..messages.explain import all_codes, explanation
from ..tables.columns import Table
from ..tables.listed import CODES
from ..tools.listing import listing
from .arguments import usage_error
from .console import Console
from .table import table
from .tabular import show

__all__ = ["explain"]


def explain(options: SimpleNamespace, console: Console) -> int:
    """Print the paragraph of a code, or the titles of all."""
    if not options.files:
        codes = all_codes()
        titles = [(code, text.partition("\n")[0]) for code, text in codes.items()]
        rows = [{"code": code, "title": title} for code, title in titles]
        show(options, console, lambda: listing("codes"), lambda: {"codes": rows}, lambda: table(titles))
        return 0
    code = options.files[0].upper()
    text = explanation(code)
    if text is None:
        raise usage_error(
            f"there is no code `{options.files[0]}`",
            _similar(code) or "`collc explain` lists them",
            "C0026",
        )
    title, _, rest = text.partition("\n")
    show(
        options, console, lambda: Table(CODES, [{"code": code, "title": title}]),
        lambda: {"code": code, "title": title, "text": rest.strip()}, lambda: f"{code}: {title}\n{rest.rstrip()}\n",
    )  # fmt: skip
    return 0


def _similar(code: str) -> str | None:
    """Return a hint with the codes that have the digits of a word that is no code."""
    digits = "".join(char for char in code if char.isdigit())
    found = [known for known in all_codes() if digits and int(digits) == int(known[1:])]
    return f"did you mean `{found[0]}`?" if found else None
