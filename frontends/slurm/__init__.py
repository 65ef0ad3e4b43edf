"""Reader of trees, blocks, rings and tori of hosts, as Slurm reads them from `topology.conf` and `topology.yaml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collc.ir.diagnostic import Source

    from ..importing.figures import Figures
    from ..importing.model import Imported

__all__ = ["completes", "read", "sniff"]

_CONF = re.compile(r"^[ \t>]*(SwitchName|BlockName|RingName|BlockSizes)[ \t]*=", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(r"^[ \t>]*-[ \t]+[\"']?(topology|cluster_default)[\"']?[ \t]*:", re.MULTILINE)


def sniff(head: str) -> bool:
    """Return whether a text has lines of `topology.conf`, or a list of topologies of `topology.yaml`."""
    return bool(_CONF.search(head) or _YAML.search(head))


def completes(head: str) -> bool:
    """Return whether a text goes on with the lines of the `topology.conf` before it."""
    return bool(_CONF.search(head))


def read(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe; lines of several `topology.conf` count as one file's."""
    from .conf import declared
    from .network import network
    from .yaml_file import chosen

    text = sources[0].text
    if not _CONF.search(text) and (_YAML.search(text) or text.lstrip()[:1] in ("[", "{", "-")):
        return network(figures, lambda draft: chosen(draft, sources, figures))
    return network(figures, lambda draft: declared(draft, sources, figures))
