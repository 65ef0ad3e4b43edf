"""``collc explain``."""

from __future__ import annotations

from types import SimpleNamespace

from ..messages.explain import all_codes, explanation
from .arguments import usage_error
from .console import Console
from .table import table

__all__ = ["explain"]


def explain(options: SimpleNamespace, console: Console) -> int:
    """Print the paragraph of a code, or the titles of all."""
    if not options.files:
        codes = all_codes()
        titles = [(code, text.partition("\n")[0]) for code, text in codes.items()]
        if options.json:
            console.json({"codes": [{"code": code, "title": title} for code, title in titles]})
        else:
            console.out(table(titles))
        return 0
    code = options.files[0].upper()
    text = explanation(code)
    if text is None:
        from collc.ir.diagnostic import nearest

        raise usage_error(
            f"there is no code `{options.files[0]}`",
            nearest(code, all_codes()) or "`collc explain` lists them",
            "C0026",
        )
    title, _, rest = text.partition("\n")
    if options.json:
        console.json({"code": code, "title": title, "text": rest.strip()})
    else:
        console.out(f"{code}: {title}\n{rest.rstrip()}\n")
    return 0
