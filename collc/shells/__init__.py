"""Completion scripts for shells: what can follow on a command line, and the script of each shell that offers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from . import bash, fish, zsh
from .offers import commands

if TYPE_CHECKING:
    from ..cli.arguments import Verb
    from .offers import Command

__all__ = ["SHELLS", "script"]

#: shell -> the function that writes its script
SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


def script(shell: str, verbs: Mapping[str, Verb]) -> str:
    """Return the completion script of a shell for these verbs; names of plugins are in it, too."""
    return SHELLS[shell](commands(verbs))
