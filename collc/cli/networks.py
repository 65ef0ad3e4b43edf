"""``collc topologies``: the list of graph families, or one network as a file of another program."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

from collc.ir.diagnostic import Source, nearest
from collc.ir.shown import counted, listed

from ..files.texts import STDIN, Output, check_writable, write_all
from .arguments import usage_error
from .console import Console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collc.ir.topology import Topology

__all__ = ["is_file", "networks_named", "topologies"]


def topologies(options: SimpleNamespace, console: Console) -> int:
    """List the graph families, or write a network in the form of ``--as``; return the exit status."""
    form = vars(options)["as"]
    if form is None:
        from . import listing

        _require_form(options)
        return listing.topologies(options, console)
    _require_one_output(options)
    source = options.files[0]
    if options.rack is not None and form != "cabling":
        raise usage_error("--rack is for a cabling list", "add --as cabling")
    if options.o:
        check_writable([options.o], [source] if os.path.isfile(source) else [])
    text = _written(_network(options, console), form, options.rack, console)
    write_all([Output(options.o or STDIN, text)])
    if options.o:
        console.say(f"wrote {options.o} ({len(text.encode())} bytes)")
    return 0


def _written(topology: Topology, form: str, rack: int | None, console: Console) -> str:
    if rack is None:
        from collc.backends.networks import write_network

        return write_network(topology, form)
    from collc.backends.networks.cabling import write
    from collc.passes.finder.racks import assign_racks

    racks = assign_racks(topology, rack)
    count = counted(int(racks.rack.max()) + 1, "rack")
    console.say(f"{count}: {counted(racks.links, 'link')} between racks, no assignment has less than {racks.bound}")
    return write(topology, racks.rack.tolist())


def _require_form(options: SimpleNamespace) -> None:
    """Raise C0001 for options that only a written network has."""
    for name, value in (("-o", options.o), ("--topology", options.topology), ("--rack", options.rack)):
        if value is not None:
            raise usage_error(f"{name} is for a network that is written", "add --as FORM, such as `--as graphml`")


def _require_one_output(options: SimpleNamespace) -> None:
    if not options.files:
        hint = "`collc topologies 'dgx_a100(2)' --as graphml`, or the name of a file"
        raise usage_error("--as needs a network", hint)
    given = [f"--{name}" for name in ("json", "csv", "markdown") if getattr(options, name)]
    if given:
        raise usage_error(f"--as writes a network, {given[0]} a list", f"leave {given[0]} out")


def _network(options: SimpleNamespace, console: Console) -> Topology:
    """Return the network that the argument names: an expression, or a topology of a file."""
    source = options.files[0]
    if is_file(source):
        return _chosen(_declared(source, options, console), options.topology, source)
    if options.topology is not None:
        raise usage_error(f"--topology chooses a topology of a file, and `{source}` is an expression")
    return _expressed(source, options)


def networks_named(source: str, options: SimpleNamespace, console: Console) -> list[tuple[str, Topology]]:
    """Return the network of an expression, or all topologies of a file, each with what to call it in a table."""
    if not is_file(source):
        return [(source, _expressed(source, options))]
    known = _declared(source, options, console)
    if not known:
        raise usage_error(f"`{source}` has no topology", "declare one: `topology pod = torus(4, 4);`")
    return [(f"{source}: {name}", topology) for name, topology in known.items()]


def is_file(source: str) -> bool:
    """Return whether an argument names a file, and is no expression."""
    return source == STDIN or os.path.exists(source) or source.endswith((".coll", ".ir"))


def _expressed(source: str, options: SimpleNamespace) -> Topology:
    from collc.frontends import coll

    return coll.topology(source, node_limit=options.node_limit)


def _declared(source: str, options: SimpleNamespace, console: Console) -> Mapping[str, Topology]:
    """Return the topologies of a file by name; a file that `collc import` reads has one, called after the file."""
    from collc.frontends import importing

    from ..files.naming import identifier, stem_of
    from ..reading import reader_of
    from ..reading.base import ReadOptions
    from .inputs import loading, read

    text, name = read(source, console)
    if not name.endswith((".coll", ".ir")) and importing.sniff(text) is not None:
        found, title = importing.read([Source(name, text)]), identifier(stem_of(source))
        console.warn(found.warnings)
        return {title: found.topology(title)}
    spec, _ = reader_of(text, name, "topologies").load(text, name, ReadOptions(loading(options)))
    console.warn(spec.warnings)
    return spec.topologies


def _chosen(known: Mapping[str, Topology], name: str | None, path: str) -> Topology:
    """Return the topology of a name, or the only one."""
    shown = listed([f"`{one}`" for one in known]) if known else "none"
    if name is not None and name in known:
        return known[name]
    if name is not None:
        raise usage_error(f"`{path}` has no topology `{name}`", nearest(name, known) or f"it has {shown}")
    if len(known) == 1:
        return next(iter(known.values()))
    hint = f"choose one: --topology {next(iter(known))}" if known else "declare one: `topology pod = torus(4, 4);`"
    raise usage_error(f"`{path}` has {len(known)} topologies: {shown}", hint)
