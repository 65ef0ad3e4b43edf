"""``collc completion``: scripts with which shells complete command lines."""

from __future__ import annotations

from types import SimpleNamespace

from collc.ir.diagnostic import nearest

from ..shells import SHELLS, script
from .arguments import usage_error
from .console import Console
from .verbs import VERBS

__all__ = ["completion"]


def completion(options: SimpleNamespace, console: Console) -> int:
    """Print the script of one shell."""
    shell = options.files[0]
    if shell not in SHELLS:
        raise usage_error(
            f"there is no completion for `{shell}`", nearest(shell, SHELLS) or f"known: {', '.join(SHELLS)}"
        )
    console.out(script(shell, VERBS))
    return 0
