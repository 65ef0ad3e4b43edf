"""The table of readers of machines' own files. A text is recognized by its content; file names do not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import attrs

from collc.ir.diagnostic import Source, error, nearest
from collc.ir.registry import Registry, load

if TYPE_CHECKING:
    from .figures import Figures
    from .model import Imported

__all__ = [
    "IMPORTS", "Importer", "completes", "nearest_format", "reader", "recognized", "sniff", "with_line_ends",
]  # fmt: skip

_HEAD = 1 << 16  # characters in which a format is recognized


class Importer(NamedTuple):
    """A format that is imported: its module, a summary, and the command that prints such files.

    The module has ``sniff(head: str) -> bool``, which sees the beginning of a text, and
    ``read(sources, figures) -> Imported``. ``hosts`` says that ranks are hosts, so that it is a fabric. Messages call a
    file of the format ``noun``.

    >>> Importer("my_package.links", "a table of links", "an editor", noun="a table of links").hosts
    False
    """

    module: str
    summary: str
    printed_by: str
    hosts: bool = False
    noun: str = "a file that collc imports"


Read: TypeAlias = "Callable[[Sequence[Source], Figures], Imported]"

#: format -> its reader, in the order in which texts are tried
IMPORTS: Registry[Importer] = Registry("format to import", ("imports",), {
    "nccl-topo": Importer(
        "collc.frontends.nccl_topo", "topology files of NCCL and RCCL, full or hints", "NCCL_TOPO_DUMP_FILE=node.xml",
        noun="a topology file of NCCL",
    ),
    "hwloc": Importer(
        "collc.frontends.hwloc", "a machine as hwloc sees it, with distances", "lstopo --of xml",
        noun="a topology file of hwloc",
    ),
    "graphml": Importer(
        "collc.frontends.graphml", "a graph in GraphML", "networkx.write_graphml",
        noun="a GraphML file",
    ),
    "amd-smi": Importer(
        "collc.frontends.amd_smi", "the links between GPUs of AMD, as text or JSON", "amd-smi topology",
        noun="the output of `amd-smi topology`",
    ),
    "rocm-smi": Importer(
        "collc.frontends.rocm_smi", "the links between GPUs of AMD, as text or JSON", "rocm-smi --showtopo",
        noun="the output of `rocm-smi`",
    ),
    "nvidia-smi": Importer(
        "collc.frontends.nvidia_smi", "the matrix of GPUs and NICs, and the speeds of NVLinks",
        "nvidia-smi topo -m; nvidia-smi nvlink -s",
        noun="the output of `nvidia-smi`",
    ),
    "ibnetdiscover": Importer(
        "collc.frontends.ibnetdiscover", "switches, hosts and cables of an InfiniBand fabric", "ibnetdiscover",
        hosts=True, noun="the output of `ibnetdiscover`",
    ),
    "slurm": Importer(
        "collc.frontends.slurm", "trees, blocks and tori of hosts: topology.conf and topology.yaml", "Slurm",
        hosts=True, noun="a topology file of Slurm",
    ),
    "nodelink": Importer(
        "collc.frontends.nodelink", "a graph as node-link JSON", "networkx.node_link_data",
        noun="a graph in node-link JSON",
    ),
    "taccl": Importer(
        "collc.frontends.taccl", "a topology of TACCL as JSON", "TACCL",
        noun="a profile of TACCL",
    ),
    "msccl-tools": Importer(
        "collc.frontends.msccl_tools", "a topology of msccl-tools as JSON", "msccl-tools",
        noun="a topology of msccl-tools",
    ),
    "dot": Importer(
        "collc.frontends.dot", "a graph in Graphviz's language", "Graphviz",
        noun="a Graphviz graph",
    ),
    "astra-sim": Importer(
        "collc.frontends.astra_sim", "a network of dimensions as YAML", "ASTRA-sim",
        noun="a network file of ASTRA-sim",
    ),
    "htsim": Importer(
        "collc.frontends.htsim", "a tree of switches as tiers", "htsim", hosts=True,
        noun="a topology file of htsim",
    ),
}, of=Importer)  # fmt: skip


def sniff(text: str) -> str | None:
    """Return the format of a text, or None. Plugins are consulted only if no reader of collc recognizes it."""
    head = _line_ends(text[:_HEAD]).lstrip("\ufeff")
    for name, one in IMPORTS.own.items():
        if _module(one).sniff(head):
            return name
    for name, one in IMPORTS.brought().items():
        if load(one.module, "sniff", f"the reader `{name}`", IMPORTS.package(name))(head):
            return name
    return None


def recognized(source: Source) -> str:
    """Return the format of a text; raise C0921 if no reader recognizes it."""
    name = sniff(source.text)
    if name is None:
        from .near import unrecognized

        raise unrecognized(source, IMPORTS.own)
    return name


def reader(name: str, source: Source) -> Read:
    """Return the function that reads a format; raise C0922 for an unknown one."""
    if name not in IMPORTS:
        raise error("C0922", f"there is no format `{name}` to import", hint=nearest_format(name), exit_status=2)
    if name in IMPORTS.own:
        found: Read = _module(IMPORTS[name]).read
        return found
    brought: Read = load(IMPORTS[name].module, "read", f"the reader `{name}`", IMPORTS.package(name))
    return brought


def nearest_format(name: str) -> str:
    """Return a hint for an unknown format.

    >>> nearest_format("nccl"), nearest_format("zip")[:21]
    ('did you mean `nccl-topo`?', 'known: nccl-topo, hwl')
    """
    longer = [one for one in IMPORTS if name and one.startswith(name)]
    if len(longer) == 1:
        return f"did you mean `{longer[0]}`?"
    return nearest(name, IMPORTS) or f"known: {', '.join(IMPORTS)}"


def with_line_ends(source: Source) -> Source:
    """Return a text whose lines end in LF; CR alone ends lines if the text has no LF."""
    text = _line_ends(source.text)
    return source if text is source.text else attrs.evolve(source, text=text)


def _line_ends(text: str) -> str:
    return text if "\r" not in text or "\n" in text else text.replace("\r", "\n")


def _module(one: Importer):  # type: ignore[no-untyped-def]  # a reader's room
    return import_module(one.module)


def completes(name: str, before: str, source: Source) -> bool:
    """Return whether a text of format ``name`` belongs to the network of the text ``before`` it.

    A reader that takes several texts of one network has ``completes(head: str) -> bool``: whether a text has no network
    of its own, or is another part of the same.
    """
    if name != before or name not in IMPORTS.own:
        return False
    judge = getattr(_module(IMPORTS[name]), "completes", None)
    return bool(judge and judge(_line_ends(source.text[:_HEAD])))
