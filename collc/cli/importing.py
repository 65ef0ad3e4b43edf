"""``collc import``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.diagnostic import Source
from collc.ir.shown import counted

from ..files.texts import STDIN, STDOUT, Output, check_writable, output_folder, write_all
from ..tables.columns import Table
from ..tables.further import IMPORTED, NETWORKS
from .arguments import usage_error
from .console import Console
from .inputs import read
from .tabular import Tables, is_printed, require_one_form, show

if TYPE_CHECKING:
    from collc.ir.topology import Topology

    from ..tables.columns import Cell
    from ..tools.importing import ImportedNetwork, Request
    from ..tools.joining import Joining

__all__ = ["import_"]


def import_(options: SimpleNamespace, console: Console) -> int:
    """Write the networks of the files as one `.coll` file; return the exit status."""
    from ..tools.importing import import_texts

    out = _output(options)
    for form in ("json", "csv", "markdown"):
        if out == STDOUT and is_printed(options, form):
            raise usage_error(f"--{form} and the `.coll` file would both go to standard output", "write `-o FILE`")
    require_one_form(options, [path for path in [*options.files, *options.fabric] if path != STDIN])
    check_writable([out], [*options.files, *options.fabric], options.o)
    written = import_texts(_request(options, console))
    console.warn(written.diagnostics)
    console.signals.check()
    output = Output(out, written.text)
    with output_folder(options.o):
        write_all([output], if_changed=options.write_if_changed)
    summary = f"wrote {out}: {_described(written)}\n" if out != STDOUT and not options.quiet else ""
    show(options, console, _tables(out, written), lambda: _document(output, written), lambda: summary)
    return 0


def _output(options: SimpleNamespace) -> str:
    """Return the path of the file: in a folder it is called as the network."""
    from ..files.texts import is_folder

    if options.o is None or not is_folder(options.o):
        return options.o or STDOUT
    return os.path.join(options.o, f"{_name(options)}.coll")


def _name(options: SimpleNamespace) -> str:
    """Return the name of the network: the given one, or that of the output, the cluster or the file."""
    from collc.frontends.importing.coll_text import identifier

    from ..files.naming import stem_of
    from ..files.texts import is_folder

    if options.name is not None:
        if options.name != identifier(options.name):
            message = f"`--name` needs a name of the language, found `{options.name}`"
            raise usage_error(message, f"write `--name {identifier(options.name)}`")
        return str(options.name)
    if options.o and options.o != STDOUT and not is_folder(options.o):
        return identifier(stem_of(options.o))
    return "pod" if options.fabric else identifier(stem_of(options.files[0]))


def _request(options: SimpleNamespace, console: Console) -> Request:
    from ..tools.importing import Request, figures_of, known_collective

    if [*options.files, *options.fabric].count(STDIN) > 1:
        raise usage_error("standard input is one file, found `-` twice")
    figures = figures_of(
        options.gpu, options.gpu_link, options.nic, dict(options.tier_bandwidth or ()), options.size, options.choose,
        options.node_limit,
    )  # fmt: skip
    return Request(
        tuple(_source(path, console) for path in options.files), _name(options), figures,
        options.format, _joining(options, console), tuple(map(known_collective, options.collective)),
    )  # fmt: skip


def _source(path: str, console: Console) -> Source:
    text, name = read(path, console)
    return Source(name if path == STDIN else path, text)


def _joining(options: SimpleNamespace, console: Console) -> Joining | None:
    from ..tools.joining import Joining

    if not options.fabric:
        for name in ("hosts", "nics"):
            if getattr(options, name):
                raise usage_error(f"--{name} says which machines are on a fabric", "give the fabric: `--fabric FILE`")
        return None
    return Joining(
        tuple(_source(path, console) for path in options.fabric), tuple(options.hosts), options.nics
    )  # fmt: skip


def _described(written: ImportedNetwork) -> str:
    """Return the size of the network, or of each one if they stay apart."""
    if len(written.networks) > 1 and written.name == written.networks[0].name:
        return "; ".join(f"`{one.name}` has {_size(written.topologies[one.name])}" for one in written.networks)
    return _size(written.topology)


def _size(topology: Topology) -> str:
    switches = f"{counted(topology.num_switches, 'switch')}, " if topology.num_switches else ""
    return f"{counted(topology.num_ranks, 'rank')}, {switches}{counted(topology.num_links, 'link')}"


def _tables(out: str, written: ImportedNetwork) -> Tables:
    """Return the tables of ``--table``: the topologies of the written file, and the networks that were read."""
    return {
        "topologies": lambda: Table(NETWORKS, [{"path": out, **row} for row in _topologies(written)]),
        "imported": lambda: Table(IMPORTED, _imported(written)),
    }


def _document(output: Output, written: ImportedNetwork) -> Mapping[str, object]:
    """Return what ``--json`` prints."""
    return {
        "outputs": [
            {"path": output.path, "bytes": len(output.data), "sha256": hashlib.sha256(output.data).hexdigest()}
        ],
        "topology": written.name,
        "imported": [
            {**row, "files": list(one.files), "notes": [note.text for note in one.network.notes]}
            for row, one in zip(_imported(written), written.networks, strict=True)
        ],
        "topologies": _topologies(written),
    }  # fmt: skip


def _imported(written: ImportedNetwork) -> list[dict[str, Cell]]:
    """Return a row for every network that was read."""
    return [
        {
            "name": one.name, "format": one.network.format, "files": ", ".join(one.files),
            "ranks": len(one.network.ranks), "switches": len(one.network.switches),
            "links": sum(cable.count * (1 + cable.duplex) for cable in one.network.cables),
        }
        for one in written.networks
    ]  # fmt: skip


def _topologies(written: ImportedNetwork) -> list[dict[str, Cell]]:
    """Return a row for every topology of the file that was written."""
    return [
        {
            "name": name, "ranks": found.num_ranks, "switches": found.num_switches, "links": found.num_links,
            "unit": found.unit,
        }
        for name, found in written.topologies.items()
    ]  # fmt: skip
