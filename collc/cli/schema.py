"""``collc schema``."""

from __future__ import annotations

from types import SimpleNamespace

from collc.ir.diagnostic import nearest

from ..tables.schemas import DOCUMENTS
from ..tools.listing import listing
from ..tools.schemas import schema_text
from .arguments import usage_error
from .console import Console
from .table import table
from .tabular import show

__all__ = ["schema"]


def schema(options: SimpleNamespace, console: Console) -> int:
    """Print the JSON Schema of one object, or list all."""
    if options.files:
        name = options.files[0]
        if name not in DOCUMENTS:
            hint = nearest(name, DOCUMENTS) or f"known: {', '.join(DOCUMENTS)}"
            raise usage_error(f"there is no schema `{name}`", hint)
        console.out(schema_text(name))
        return 0
    rows = [{"name": name, "summary": summary} for name, (summary, _) in DOCUMENTS.items()]
    lines = [(name, summary) for name, (summary, _) in DOCUMENTS.items()]
    show(options, console, lambda: listing("schemas"), lambda: {"schemas": rows}, lambda: table(lines))
    return 0
