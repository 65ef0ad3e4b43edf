"""The network of an InfiniBand fabric: hosts are ranks, each port of an adapter is a switch between host and cable.

Each cable is in the text at both ends; it counts once. Cables side by side are parallel links. What differs from its
peers is a fault, and stays in the network as the text has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from collc.ir.diagnostic import Source, error, nearest
from collc.ir.shown import counted, some

from ..importing.dead_ends import keep_part, leave_out_dead_ends
from ..importing.figures import Figures
from ..importing.model import Draft, Imported
from ..importing.tiers import parts
from .cables import Cable, End, cables, groups, heights, warn_of_missing_blocks
from .hosts import Hosts
from .names import is_part_of_switch, switch_names
from .text import Fabric, Node, parsed

__all__ = ["network"]

_MOST_COMPARED = 1000  # names that a wrong one is compared with
_FEW = 3  # ports of a kind, of which the majority says what is usual


def network(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network; raise CollcError with all mistakes."""
    draft = Draft("ibnetdiscover", hosts=True)
    fabric = parsed(draft, sources)
    if draft.mistakes:
        return draft.finish()  # raises them
    nodes = _nodes(draft, fabric)
    figures.require_within(len(nodes), len(fabric.ports))
    warn_of_missing_blocks(draft, fabric, nodes)
    found = cables(draft, fabric, nodes)
    hosts = Hosts(draft, nodes, found)
    switches = switch_names((node for node in nodes.values() if node.kind != "H"), [*hosts.ports, *hosts.name.values()])
    figures.require_within(len(hosts.ports) + len(hosts.name) + len(switches), 2 * (len(hosts.name) + len(found)))
    hosts.warn_of_fewer(draft)
    _warn_of_slow(draft, found, hosts, nodes, switches)
    _set_unknown(figures, found)
    _add(draft, found, hosts, switches)
    leave_out_dead_ends(draft)
    _check_parts(draft, figures.choice)
    draft.note("latencies are 0: ibnetdiscover prints none")
    return draft.finish()


def _nodes(draft: Draft, fabric: Fabric) -> dict[str, Node]:
    """Return the nodes of the network; adapters inside switches are left out."""
    nodes = fabric.all_nodes()
    inside = [guid for guid, node in nodes.items() if is_part_of_switch(node)]
    if inside:
        draft.note(f"left out {counted(len(inside), 'aggregation node')} (SHARP), a part of its switch")
    return {guid: node for guid, node in nodes.items() if guid not in set(inside)} if inside else nodes


def _set_unknown(figures: Figures, found: Sequence[Cable]) -> None:
    """Give the cables whose rate neither end prints the user's bandwidth of their tier."""
    unknown = [cable for cable in found if cable.speed is None]
    tiers = list(dict.fromkeys(cable.tier for cable in unknown))
    for cable in unknown:
        cable.speed = figures.require_tier(cable.tier, tiers, "neither end of this cable has a rate", cable.port.span)


def _add(draft: Draft, found: Sequence[Cable], hosts: Hosts, switches: Mapping[str, str]) -> None:
    """Add the hosts, switches and links: by hosts, then by tiers; equal cables side by side are one with a count."""
    names = hosts.name | {end: switches[end[0]] for cable in found for end in (cable.a, cable.b) if end[0] in switches}
    cable_at = {end: cable for cable in found for end in (cable.a, cable.b)}
    for host, ends in hosts.ports.items():
        draft.rank(host, hosts.nodes[ends[0][0]].span)
    for guid, name in switches.items():
        draft.switch(name, hosts.nodes[guid].span)
    for host, ends in hosts.ports.items():
        for end in ends:
            draft.switch(hosts.name[end], hosts.nodes[end[0]].span)
            draft.link(host, hosts.name[end], _known(cable_at[end]), label="from a host to its adapters")
    leaves = dict.fromkeys(cable_at[end] for ends in hosts.ports.values() for end in ends)
    others = sorted((cable for cable in found if cable.height), key=lambda cable: cable.height)
    links = Counter((names[one.a], names[one.b], _known(one), one.tier) for one in (*leaves, *others))
    for (a, b, speed, tier), count in links.items():
        draft.link(a, b, speed, count=count, label=f"tier {tier}")


def _known(cable: Cable) -> Fraction:
    assert cable.speed is not None  # _set_unknown gives all others one
    return cable.speed


# ---- faults of the whole


def _warn_of_slow(
    draft: Draft, found: Sequence[Cable], hosts: Hosts, nodes: Mapping[str, Node], switches: Mapping[str, str]
) -> None:  # fmt: skip
    """Add a fault for each cable slower than its peers: of its host, switch or tier."""
    height = heights(nodes, found)
    counts, tiers = dict[tuple[str, ...], Counter[str]](), dict[str, Counter[str]]()
    speeds = {cable.rate: cable.speed for cable in found if cable.rate and cable.speed}
    for cable in found:
        if cable.rate:
            tiers.setdefault(cable.tier, Counter())[cable.rate] += 1
            for group in groups(cable, height, hosts.host):
                counts.setdefault(group, Counter())[cable.rate] += 1
    for cable in found:
        if cable.rate is None or len(tiers[cable.tier]) == 1:
            continue
        near = [counts[group] for group in groups(cable, height, hosts.host) if counts[group].total() >= _FEW]
        found_usual = (_usual(one, cable.rate, speeds) for one in near or [tiers[cable.tier]])
        usual = next((rate for rate in found_usual if rate is not None), None)
        if usual is not None:
            ends = " and ".join(_end(end, hosts, switches) for end in (cable.a, cable.b))
            draft.fault(f"the cable between {ends} runs at {cable.rate}, its peers at {usual}", cable.port.span)


def _usual(peers: Counter[str], rate: str, speeds: Mapping[str, Fraction]) -> str | None:
    """Return the most common faster rate if half of the peers or more are faster."""
    faster = Counter({other: count for other, count in peers.items() if speeds[other] > speeds[rate]})
    return faster.most_common(1)[0][0] if 2 * faster.total() >= peers.total() else None


def _end(end: End, hosts: Hosts, switches: Mapping[str, str]) -> str:
    return f"`{hosts.name[end]}`" if end in hosts.name else f"`{switches[end[0]]}` port {end[1]}"


def _check_parts(draft: Draft, choice: str | None) -> None:
    """Keep the part of the host that the user chooses; else add a fault if no cable joins all hosts."""
    part = parts([*draft.ranks, *draft.switches], ((cable.a, cable.b) for cable in draft.cables))
    firsts = dict[str, str]()
    for host in draft.ranks:
        firsts.setdefault(part[host], host)
    if choice is not None and choice in draft.ranks:
        keep_part(draft, part, choice)
    elif choice is not None:
        hint = nearest(choice, draft.ranks) if len(draft.ranks) <= _MOST_COMPARED else None
        raise error("C0974", f"found no host `{choice}` to choose", hint=hint)
    elif len(firsts) > 1:
        names = some([f"`{host}`" for host in firsts.values()])
        message = f"no cable joins {len(firsts)} parts of the fabric, those of the hosts {names}"
        draft.fault(message, hint="is the file complete? `--choose HOST` takes the part of one host")
