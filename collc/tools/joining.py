"""Imported machines in place of the hosts of an imported fabric, with messages that name the options of the command."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from collc.frontends.coll.hosts import named_hosts
from collc.frontends.importing.coll_text import comments
from collc.frontends.importing.figures import Figures
from collc.frontends.importing.joining import box_of, joint
from collc.frontends.importing.model import Imported, Note
from collc.frontends.importing.ports import JoinError
from collc.frontends.importing.trees import place_at
from collc.ir.diagnostic import CollcError, Diagnostic, Source, Span, error, warning
from collc.ir.frozen import frozen
from collc.ir.shown import counted, some
from collc.ir.topology import Topology

__all__ = ["Joined", "Joining", "Named", "join"]

_LONGEST_PATTERN = 255
_UNIT_HINT = "import the files into a `.coll` file, where `with { bandwidth: 25 GB/s }` gives both the same unit"


@frozen
class Joining:
    """A fabric, and which of its hosts are machines of which file: one list of hosts for each, or none for all.

    ``nics`` is a pattern of the names of the NICs that have a port in the fabric.
    """

    fabric: tuple[Source, ...]
    hosts: tuple[str, ...] = ()
    nics: str | None = None


@frozen
class Named:
    """One imported network under the name of its topology, and the files that it is from."""

    name: str
    network: Imported
    files: tuple[str, ...]


@frozen
class Joined:
    """The network of machines on a fabric, its declarations in the language, and what was found in joining it."""

    topology: Topology
    text: str
    warnings: tuple[Diagnostic, ...]


def join(
    joining: Joining, machines: Sequence[Named], fabric: Named, names: Sequence[str], figures: Figures
) -> Joined:  # fmt: skip
    """Return the fabric with machines in place of hosts; ``names`` are those of the declarations, one for each machine.

    Raises CollcError C0935 for another number of lists of hosts than machines, C0933 for a network beyond the limit,
    and what :func:`.named_hosts` and :func:`.joint` raise: with a place in the option that is wrong, or with none.
    """
    pattern = _pattern(joining.nics)
    below, name = fabric.network.topology(_files(fabric)), fabric.name
    lists = _lists(joining, machines)
    hosts = _hosts(lists, machines, below)
    lines, warnings = list[str](), list[Diagnostic]()
    for machine, given, chosen, declared in zip(machines, lists, hosts, names, strict=True):
        numbers = {host: rank for rank, host in enumerate(below.names[: below.num_ranks])}
        box = machine.network.topology(_files(machine))
        try:
            found = joint(box_of(box, pattern), below, sorted(numbers[host] for host in chosen), pattern)
            figures.require_within(found.num_nodes, found.num_links)
            below = found.topology(_files(fabric))
        except JoinError as failure:
            raise CollcError([_by_options(one, failure.at, pattern) for one in failure.diagnostics]) from None
        found_here = [_by_options(one, "nic", None) for one in found.warnings]
        lines += [
            *comments(Note(one.message) for one in found_here),
            _cluster(declared, machine.name, name, given, pattern),
        ]
        warnings += found_here
        name = declared
    if left := _left(hosts, fabric.network.ranks):
        warnings.append(_stay(left, _files(fabric), name))
        lines += comments([Note(warnings[-1].message)])
    return Joined(attrs.evolve(below, name=name), "\n".join([*lines, ""]), tuple(warnings))


def _left(hosts: Sequence[Sequence[str]], ranks: Sequence[str]) -> list[str]:
    """Return the hosts of a fabric that no machine replaces."""
    replaced = {host for chosen in hosts for host in chosen}
    return [host for host in ranks if host not in replaced]


def _stay(left: Sequence[str], fabric: str, name: str) -> Diagnostic:
    hosts = some([f"`{host}`" for host in left])
    what = (
        f"the host {hosts} of `{fabric}` stays a rank" if len(left) == 1 else f"hosts of `{fabric}` stay ranks: {hosts}"
    )
    hint = f"collectives have their data too: `without({name}, {{HOST, ..}})` in a `.coll` file leaves hosts out"
    return warning("C0956", what, hint=hint)


def _files(one: Named) -> str:
    """Return what messages call a network: its files."""
    return ", ".join(one.files)


def _cluster(name: str, machine: str, fabric: str, hosts: str | None, pattern: str | None) -> str:
    options = [] if hosts is None else [f'hosts: "{" ".join(hosts.split())}"']
    options += [] if pattern is None else [f'nic: "{pattern}"']
    given = f" {{ {', '.join(options)} }}" if options else ""
    return f"cluster {name} = {machine} on {fabric}{given};"


# ---- hosts


def _lists(joining: Joining, machines: Sequence[Named]) -> tuple[str | None, ...]:
    """Return the list of hosts of every machine; None for all hosts."""
    if not joining.hosts and len(machines) == 1:
        return (None,)
    if len(joining.hosts) != len(machines):
        found = counted(len(joining.hosts), "list") if joining.hosts else "no lists"
        message = f"found {found} of hosts for {counted(len(machines), 'machine')}"
        hint = "write `--hosts LIST` once for each machine, in the order of the files"
        raise error("C0935", message, hint=hint, exit_status=2)
    return joining.hosts


def _hosts(lists: Sequence[str | None], machines: Sequence[Named], fabric: Topology) -> list[list[str]]:
    """Return the hosts of every machine; raise C0137 for a host of two machines."""
    owner = dict[str, Named]()
    found = list[list[str]]()
    for given, machine in zip(lists, machines, strict=True):
        found.append([fabric.names[rank] for rank in _ranks(given, fabric)])
        for host in found[-1]:
            if host in owner:
                message = f"found the host `{host}` in the lists of `{_files(owner[host])}` and `{_files(machine)}`"
                span = _in_option("--hosts", given or "")
                raise error("C0137", message, span=span, hint="name each host once")
        owner |= dict.fromkeys(found[-1], machine)
    return found


def _ranks(given: str | None, fabric: Topology) -> Sequence[int]:
    if given is None:
        return range(fabric.num_ranks)
    whole = _in_option("--hosts", given)
    return named_hosts(given, fabric, whole, lambda start, end: place_at(whole.source, start, end - start))


# ---- options in messages


def _in_option(option: str, text: str) -> Span:
    """Return the place of an option's value."""
    return place_at(Source(f"<{option}>", text), 0, len(text))


def _pattern(given: str | None) -> str | None:
    """Return the pattern of NICs; raise C0951 for one that the language cannot write."""
    if given is not None and (not given.isprintable() or '"' in given or not 0 < len(given) <= _LONGEST_PATTERN):
        message = f"found {given[:40]!r}, needed a pattern of names of NICs"
        raise error("C0951", message, hint="write `--nics 'mlx5_*'`", exit_status=2)
    return given


def _by_options(found: Diagnostic, at: str, pattern: str | None) -> Diagnostic:
    """Return what joining found in the words of the command."""
    span = _in_option("--nics", pattern) if at == "nic" and pattern is not None else None
    hint = _UNIT_HINT if found.code == "C0312" else _as_options(found.hint) if found.hint else None
    return attrs.evolve(found, span=span, hint=hint, related=())


def _as_options(text: str) -> str:
    """Return a hint with the option in place of the language's words.

    >>> _as_options("choose NICs with `nic: PATTERN`, such as `nic: mlx5_*`")
    "choose NICs with `--nics PATTERN`, such as `--nics 'mlx5_*'`"
    """
    return re.sub(r"`nic: ([^`]*)`", lambda one: f"`--nics {one[1] if one[1].isalpha() else repr(one[1])}`", text)
