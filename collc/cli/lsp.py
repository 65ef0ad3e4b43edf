"""``collc lsp``: the language server, which needs the package pygls."""

from __future__ import annotations

from types import SimpleNamespace

from collc import __version__
from collc.ir.diagnostic import error

from .console import Console
from .inputs import loading

__all__ = ["lsp"]


def lsp(options: SimpleNamespace, console: Console) -> int:
    """Answer an editor on standard input and output until it ends; raise C0099 without pygls."""
    try:
        from ..lsp.server import serve
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        message = f"`collc lsp` needs the package pygls, version 2 or later: {problem}"
        raise error("C0099", message, hint="install it: pip install 'collc[lsp]'") from None
    given = [word for name, value in options.D for word in ("-D", f"{name}={value}")]
    given += [word for folder in options.I for word in ("-I", folder)]
    serve(__version__, loading(options), [*given, "--node-limit", str(options.node_limit)])
    return 0
