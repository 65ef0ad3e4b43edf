"""Ranks of a fabric that a list of hosts names, as in `hosts: "n[001-016]"`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collc.ir.diagnostic import CollcError, Span, error
from collc.ir.topology import Topology

from ..importing.hostlist import HostListError, expand

__all__ = ["named_hosts"]

_MOST_SHOWN = 4


def named_hosts(
    text: str, fabric: Topology, span: Span | None, place: Callable[[int, int], Span | None]
) -> tuple[int, ...]:
    """Return the ranks that a list of hosts names, in its order.

    ``span`` is the place of the list, ``place`` returns that of some of its characters. Raises CollcError C0950 for a
    text that is no list, C0120 for an unknown host, C0131 for a switch, C0137 for a host twice.
    """
    try:
        names = expand(text)
    except HostListError as wrong:
        raise error("C0950", str(wrong), span=place(wrong.start, wrong.end), hint=wrong.hint) from None
    number = {name: rank for rank, name in enumerate(fabric.names[: fabric.num_ranks])}
    missing = list(dict.fromkeys(name for name in names if name not in number))
    if missing:
        raise _unknown_host(missing, span, fabric)
    ranks = [number[name] for name in names]
    if len(set(ranks)) < len(ranks):
        seen = set[str]()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise error("C0137", f"found the host `{twice}` twice", span=span, hint="name each host once")
    return tuple(ranks)


def _unknown_host(missing: Sequence[str], span: Span | None, fabric: Topology) -> CollcError:
    from .guesses import nearest_node

    name = missing[0]
    more = f", nor {len(missing) - 1} more of the list" if len(missing) > 1 else ""
    if name in fabric.names:
        message, hint = f"found the switch `{name}`, needed a host", f"hosts are ranks of `{fabric.name}`"
        return error("C0131", message, span=span, hint=hint)
    hosts = fabric.names[: fabric.num_ranks]
    near = nearest_node(name, hosts)
    listed = ", ".join(f"`{host}`" for host in hosts[:_MOST_SHOWN]) + (", .." if len(hosts) > _MOST_SHOWN else "")
    hint = f"did you mean `{near}`?" if near else f"its hosts are {listed}"
    return error("C0120", f"`{fabric.name}` has no host `{name}`{more}", span=span, hint=hint)
