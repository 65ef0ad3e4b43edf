"""Where the NICs of a machine join a fabric: NIC ports of each host by name, or its links in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias, TypeVar

from collc.ir.diagnostic import CollcError, Diagnostic, error, warning
from collc.ir.frozen import frozen
from collc.ir.shown import counted, some
from collc.ir.topology import Topology

__all__ = ["Fabric", "JoinError", "Seat", "seats"]

_MOST_NAMES = 8
_MOST_PAIRS = 16
_MOST_GROUPS = 4

#: one link of a host, or two of opposite directions, by their numbers
Cable: TypeAlias = tuple[int, ...]
Pair: TypeAlias = tuple[str, str]
K = TypeVar("K")


class JoinError(CollcError):
    """A machine and a fabric that do not fit; ``at`` is what is wrong: ``node``, ``fabric`` or ``nic``."""

    def __init__(self, failure: CollcError, at: str):
        super().__init__(failure.diagnostics)
        self.at = at


@frozen(eq=False)
class Seat:
    """Where a copy of the machine joins in place of a ``host``.

    ``ports`` is the switch of the fabric that NIC i becomes. Without ports, ``cables`` are the links that NIC i takes
    over. ``pairs`` are a NIC and its port if their names differ. ``dropped`` are ports that no NIC becomes.
    """

    host: int
    ports: tuple[int, ...] = ()
    cables: tuple[Cable, ...] = ()
    pairs: tuple[Pair, ...] = ()
    dropped: tuple[int, ...] = ()


@frozen
class _Misfit:
    """Why a machine does not fit a host: ``text`` after the host's name, and the way out."""

    text: str
    hint: str


class Fabric:
    """The links of a fabric by node; links from a node to itself are left out."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.src, self.dst = topology.src.tolist(), topology.dst.tolist()
        self.out: dict[int, list[int]] = defaultdict(list)
        self.into: dict[int, list[int]] = defaultdict(list)
        for link, (a, b) in enumerate(zip(self.src, self.dst, strict=True)):
            if a != b:
                self.out[a].append(link)
                self.into[b].append(link)

    def neighbours(self, node: int) -> list[int]:
        """Return the nodes that links join to one, in the order of links."""
        near = [self.dst[link] for link in self.out[node]] + [self.src[link] for link in self.into[node]]
        return list(dict.fromkeys(near))

    def ports(self, host: int) -> dict[str, int]:
        """Return the NIC ports of a host by the name of the NIC: the switches linked to it that are called
        ``HOST/NIC``.
        """
        names, start = self.topology.names, f"{self.topology.names[host]}/"
        switches = (node for node in self.neighbours(host) if node >= self.topology.num_ranks)
        return {names[node][len(start) :]: node for node in switches if names[node].startswith(start)}

    def cables(self, host: int) -> list[Cable]:
        """Return the links of a host, each with its reverse if there is one, in the order of links."""
        kinds, back = self.topology.link_class, defaultdict[tuple[int, int], list[int]](list)
        for link in self.into[host]:
            back[self.src[link], int(kinds[link])].append(link)
        cables = list[Cable]()
        for link in self.out[host]:
            reverse = back[self.dst[link], int(kinds[link])]
            cables.append((link, reverse.pop(0)) if reverse else (link,))
        return sorted([*cables, *((link,) for links in back.values() for link in links)], key=min)


def seats(
    fabric: Fabric, hosts: Sequence[int], nics: Sequence[str], pattern: str | None, machine: str
) -> tuple[list[Seat], list[Diagnostic]]:
    """Return where the NICs of a ``machine`` join at each host, and warnings; raise JoinError C0952 if they do not."""
    found, wrong = list[Seat](), defaultdict[_Misfit, list[int]](list)
    for host in hosts:
        seat = _seat(fabric, host, nics, pattern, machine)
        if isinstance(seat, _Misfit):
            wrong[seat].append(host)
        else:
            found.append(seat)
    if wrong:
        raise _no_fit(fabric.topology, wrong)
    return found, [*_renamed(fabric.topology, found), *_unused(fabric.topology, found, pattern)]


def _seat(fabric: Fabric, host: int, nics: Sequence[str], pattern: str | None, machine: str) -> Seat | _Misfit:
    ports = fabric.ports(host)
    if not ports:
        return _by_links(fabric, host, nics, machine)
    others = [fabric.topology.names[node] for node in fabric.neighbours(host) if node not in set(ports.values())]
    if others:
        text = f"has NIC ports, and links to {_quoted(others)} too, which no NIC of `{machine}` can take over"
        return _Misfit(text, "leave these links out with `without(..)`, or give them NIC ports")
    return _by_names(host, ports, nics, pattern, machine)


def _by_names(
    host: int, ports: Mapping[str, int], nics: Sequence[str], pattern: str | None, machine: str
) -> Seat | _Misfit:
    used = _chosen(ports, nics, pattern)
    own = [name for name in nics if name not in used]
    foreign = [name for name in used if name not in set(nics)]
    if len(own) != len(foreign):
        return _Misfit(_unmatched(own, foreign, machine), _ports_hint(own, foreign, pattern))
    pairs = tuple(zip(own, foreign, strict=True))
    called = dict(pairs)
    taken = tuple(ports[called.get(name, name)] for name in nics)
    return Seat(host, taken, (), pairs, tuple(node for name, node in ports.items() if name not in used))


def _chosen(ports: Mapping[str, int], nics: Sequence[str], pattern: str | None) -> list[str]:
    """Return the ports that NICs become: all, or those that the pattern chooses, if it chooses any."""
    if pattern is None:
        return list(ports)
    known = set(nics)
    return [name for name in ports if name in known or fnmatchcase(name, pattern)] or list(ports)


def _unmatched(own: Sequence[str], foreign: Sequence[str], machine: str) -> str:
    parts = []
    if own:
        parts.append(f"has no port for the NIC{'s' * (len(own) > 1)} {_quoted(own)} of `{machine}`")
    if foreign:
        parts.append(f"has the port{'s' * (len(foreign) > 1)} {_quoted(foreign)}, for which `{machine}` has no NIC")
    return ", and ".join(parts)


def _ports_hint(own: Sequence[str], foreign: Sequence[str], pattern: str | None) -> str:
    if not own and pattern is None:
        return "choose the ports that the NICs become with `nic: PATTERN`, such as `nic: mlx5_*`"
    if not foreign:
        return "choose NICs with `nic: PATTERN`, such as `nic: mlx5_*`, or add the ports to the fabric"
    return "correct the names: each NIC needs a port of its own"


def _by_links(fabric: Fabric, host: int, nics: Sequence[str], machine: str) -> Seat | _Misfit:
    cables = fabric.cables(host)
    if len(cables) == len(nics):
        return Seat(host, cables=tuple(cables))
    if len(cables) == 1:
        return Seat(host, cables=tuple(cables * len(nics)))
    need = "one link" if len(nics) == 1 else f"one link, or {len(nics)}"
    text = f"has {counted(len(cables), 'link')}, and `{machine}` has {counted(len(nics), 'NIC')}: {_quoted(nics)}"
    return _Misfit(text, f"each host needs {need}; choose NICs with `nic: PATTERN`, such as `nic: mlx5_*`")


# ---- messages


def _quoted(names: Sequence[str]) -> str:
    return some([f"`{name}`" for name in names], _MOST_NAMES)


def _hosts_text(topology: Topology, hosts: Sequence[int]) -> str:
    first = f"host `{topology.names[hosts[0]]}` of `{topology.name}`"
    return first if len(hosts) == 1 else f"{first} (and {counted(len(hosts) - 1, 'host')} like it)"


def _no_fit(topology: Topology, wrong: Mapping[_Misfit, list[int]]) -> JoinError:
    texts = [f"{_hosts_text(topology, hosts)} {misfit.text}" for misfit, hosts in wrong.items()]
    more = len(texts) - 1 - _MOST_GROUPS
    notes = [*texts[1 : 1 + _MOST_GROUPS], *([f"and {counted(more, 'other difference')}"] if more > 0 else [])]
    return JoinError(error("C0952", texts[0], hint=next(iter(wrong)).hint, notes=notes), "nic")


def _renamed(topology: Topology, found: Iterable[Seat]) -> Iterator[Diagnostic]:
    """Yield a warning for each list of NICs and ports that are joined although their names differ."""
    for pairs, hosts in _grouped((seat.pairs, seat.host) for seat in found):
        joined = some([f"`{nic}` with `{port}`" for nic, port in pairs], _MOST_PAIRS)
        message = f"the NICs of {_hosts_text(topology, hosts)} have other names: joined {joined} in order"
        yield warning("C0955", message, hint="rename them in one of the files if the order is another")


def _unused(topology: Topology, found: Iterable[Seat], pattern: str | None) -> Iterator[Diagnostic]:
    """Yield a warning for each list of ports that the pattern leaves out."""
    ends = {seat.host: f"{topology.names[seat.host]}/" for seat in found}
    names = ((tuple(topology.names[n][len(ends[s.host]) :] for n in s.dropped), s.host) for s in found)
    for dropped, hosts in _grouped(names):
        ports = f"port{'s' * (len(dropped) > 1)} {_quoted(dropped)}"
        yield warning("C0954", f"`{pattern}` leaves out the {ports} of {_hosts_text(topology, hosts)}")


def _grouped(rows: Iterable[tuple[tuple[K, ...], int]]) -> Iterator[tuple[tuple[K, ...], list[int]]]:
    """Yield the keys that are not empty, each with its hosts; of many the first few."""
    groups = defaultdict[tuple[K, ...], list[int]](list)
    for key, host in rows:
        if key:
            groups[key].append(host)
    yield from list(groups.items())[:_MOST_GROUPS]
