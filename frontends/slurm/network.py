"""The network of a Slurm topology: hosts are ranks, switches and blocks are switches, bandwidths are the user's.

Slurm's files have no bandwidths (`LinkSpeed` has no unit), so each tier of links needs a figure: in a tree `leaf` from
a host to its switch, `spine` and `core` upwards, then `tier4`; `block`, `ring` and `torus` in the others. What nothing
in the file joins (blocks, and trees without a common switch) is joined by a switch `fabric` if its tier has a figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from collc.ir.diagnostic import CollcError, Span, error, nearest
from collc.ir.shown import some

from ..importing.dead_ends import keep_part, leave_out_dead_ends
from ..importing.figures import Figures, missing_tier
from ..importing.model import OPEN_END, Draft, Imported
from ..importing.tiers import parts, tier_name
from .declared import Group, Named, Shape, Topology

__all__ = ["network"]

_MOST_COMPARED = 1000  # names that a wrong one is compared with
_MOST_HINTS = 3

#: a cable to be: its ends, its tier, and the place that declares it
_Link = tuple[str, str, str, Span]


def network(figures: Figures, declare: Callable[[Draft], Topology]) -> Imported:
    """Return the network of what is declared; raise CollcError with all mistakes."""
    draft = Draft("slurm", hosts=True)
    try:
        topology = declare(draft)
        if not draft.mistakes:
            _BUILDERS[topology.kind](draft, topology, figures)
    except CollcError as failure:
        draft.take(failure)
    return draft.finish()


# ---- trees


def _tree(draft: Draft, topology: Topology, figures: Figures) -> None:
    groups = {group.name.name: group for group in topology.groups}
    for group in topology.groups:
        draft.switch(group.name.name, group.name.span)
    _check_children(draft, groups)
    if draft.mistakes:
        return
    levels = _levels(groups)
    links = list(_tree_links(draft, groups, levels))
    hosts = dict[str, Span]()
    for group in topology.groups:
        for host in group.hosts:
            hosts.setdefault(host.name, host.span)
    for name, span in hosts.items():
        draft.rank(name, span)
    below = {child.name for group in groups.values() for child in group.children}
    roots = [group.name for group in groups.values() if group.name.name not in below]
    for group in topology.groups:
        if not group.hosts and not group.children:
            draft.fault(f"the switch `{group.name.name}` has no hosts and no switches below it", group.name.span)
    heights = sorted({levels[a] + 1 for a, _, _, _ in links if a in levels})
    tiers = [tier_name(0), *map(tier_name, heights)]
    _finish(draft, topology, figures, links, tiers, {root.name: [root] for root in roots})


def _check_children(draft: Draft, groups: dict[str, Group]) -> None:
    """Add a mistake (C0971) for each child that no line declares."""
    hints = _MOST_HINTS if len(groups) <= _MOST_COMPARED else 0
    for group in groups.values():
        for child in group.children:
            if child.name not in groups:
                message = f"found no switch `{child.name}`, a child of `{group.name.name}`"
                draft.wrong("C0971", message, child.span, hint=nearest(child.name, groups) if hints else None)
                hints = max(hints - 1, 0)


def _levels(groups: dict[str, Group]) -> dict[str, int]:
    """Return the level of each switch: 0 without switches below, else one above the highest of them.

    Raises C0972 for a switch that is below itself.
    """
    left = {name: len({child.name for child in group.children}) for name, group in groups.items()}
    parents = dict[str, list[str]]()
    for name, group in groups.items():
        for child in dict.fromkeys(child.name for child in group.children):
            parents.setdefault(child, []).append(name)
    levels = dict.fromkeys(groups, 0)
    ready = [name for name, count in left.items() if not count]
    for name in ready:
        for parent in parents.get(name, ()):
            levels[parent] = max(levels[parent], levels[name] + 1)
            left[parent] -= 1
            if not left[parent]:
                ready.append(parent)
    if len(ready) < len(groups):
        done = set(ready)
        loop = [name for name in groups if name not in done]
        message = f"found switches below themselves: {some(loop)}"
        raise error("C0972", message, span=groups[loop[0]].name.span, hint="remove one of them from `Switches`")
    return levels


def _tree_links(draft: Draft, groups: dict[str, Group], levels: dict[str, int]) -> Iterator[_Link]:
    for name, group in groups.items():
        for host in _once(draft, group.hosts, name):
            yield host.name, name, tier_name(0), host.span
    for name, group in groups.items():
        for child in _once(draft, group.children, name):
            yield child.name, name, tier_name(levels[child.name] + 1), child.span


def _once(draft: Draft, names: Sequence[Named], group: str) -> Iterator[Named]:
    """Yield names; one that is listed again below the same switch is ignored with a warning."""
    counts = Counter[str]()
    for one in names:
        counts[one.name] += 1
        if counts[one.name] == 1:
            yield one
        elif counts[one.name] == 2:
            draft.warn("C0942", f"ignored `{one.name}`, which `{group}` lists again", one.span)


# ---- blocks, rings, tori


def _blocks(draft: Draft, topology: Topology, figures: Figures) -> None:
    groups = [group for group in topology.groups if group.hosts]
    for group in topology.groups:
        if not group.hosts:
            draft.warn("C0942", f"ignored the block `{group.name.name}`, which has no hosts", group.name.span)
    for group in groups:
        draft.switch(group.name.name, group.name.span)
        for host in group.hosts:
            draft.rank(host.name, host.span)
    links = [(host.name, group.name.name, "block", host.span) for group in groups for host in group.hosts]
    _finish(draft, topology, figures, links, ["block"], {group.name.name: [group.name] for group in groups})


def _rings(draft: Draft, topology: Topology, figures: Figures) -> None:
    links, heads = list[_Link](), dict[str, Sequence[Named]]()
    for group in topology.groups:
        for host in group.hosts:
            draft.rank(host.name, host.span)
        names = [host.name for host in group.hosts]
        span = group.name.span
        links += [(a, b, "ring", span) for a, b in zip(names, _shifted(names), strict=False)]
        heads[group.name.name] = group.hosts
    _finish(draft, topology, figures, links, ["ring"], heads)


def _shifted(names: list[str]) -> list[str]:
    """Return the next name in a ring for each; of two, the second has none, since they have one link."""
    return names[1:] + (names[:1] if len(names) > 2 else [])


def _tori(draft: Draft, topology: Topology, figures: Figures) -> None:
    links, heads = list[_Link](), dict[str, Sequence[Named]]()
    for shape in topology.shapes:
        heads[shape.name.name] = [host for _, host in shape.places]
        for host in heads[shape.name.name]:
            draft.rank(host.name, host.span)
        links += _torus_links(shape)
    _finish(draft, topology, figures, links, ["torus"], heads)


def _torus_links(shape: Shape) -> Iterator[_Link]:
    """Yield the links of a torus to the next coordinate in x, y and z; a dimension of two has one link, not two."""
    places = dict(shape.places)
    for at, host in shape.places:
        for axis, size in enumerate(shape.dims):
            there = (*at[:axis], (at[axis] + 1) % size, *at[axis + 1 :])
            if size == 1 or (size == 2 and at[axis] == 1):
                continue
            if other := places.get((there[0], there[1], there[2])):
                yield host.name, other.name, "torus", host.span


# ---- the links


def _finish(
    draft: Draft, topology: Topology, figures: Figures, links: Sequence[_Link], tiers: list[str],
    heads: Mapping[str, Sequence[Named]],
) -> None:  # fmt: skip
    """Add the links; ``heads`` are, by names to choose from, the nodes that a switch `fabric` joins."""
    if draft.mistakes or not draft.ranks:
        return
    part = parts([*draft.ranks, *draft.switches], ((a, b) for a, b, _, _ in links))
    joined = {part[node.name]: name for name, nodes in heads.items() for node in nodes}
    if figures.choice is not None and not topology.is_chosen:
        _keep(draft, figures.choice, part, heads)
    elif len(joined) > 1:
        tiers = [*tiers, OPEN_END]
        if OPEN_END not in figures.tiers:
            raise _not_joined(tiers, list(heads), topology)
        draft.switch(OPEN_END)
        links = [*links, *((one.name, OPEN_END, OPEN_END, one.span) for nodes in heads.values() for one in nodes)]
    figures.require_within(len(draft.ranks) + len(draft.switches), 2 * len(links), topology.span)
    for tier in figures.tiers:
        if tier not in tiers:
            draft.warn("C0942", f"ignored the bandwidth of tier `{tier}`: the file has {', '.join(tiers)}")
    for a, b, tier, span in links:
        if a in draft and b in draft:
            bandwidth = figures.require_tier(tier, tiers, "cannot tell how fast the links are", span)
            draft.link(a, b, bandwidth, label=f"{tier}: {_LABELS.get(tier, 'from a switch to the one above')}")
    leave_out_dead_ends(draft)


def _not_joined(tiers: list[str], heads: Sequence[str], topology: Topology) -> CollcError:
    """Return the error C0923 for parts that nothing joins; the bandwidth of `fabric`, or a choice, mends it."""
    what = f"nothing in the file joins {some(heads)}; a switch `{OPEN_END}` can"
    notes = () if topology.is_chosen else ("`--choose NAME` takes one of them instead",)
    failure = missing_tier(OPEN_END, tiers, what, topology.span)
    return CollcError([attrs.evolve(one, notes=notes) for one in failure.diagnostics])


_LABELS = {
    "leaf": "from a host to its switch",
    "block": "from a host to its block",
    "ring": "between neighbours in a ring",
    "torus": "between neighbours in a torus",
    OPEN_END: "to the switch that joins all",
}


def _keep(draft: Draft, choice: str, part: dict[str, str], heads: Mapping[str, Sequence[Named]]) -> None:
    """Keep the part of the network that a choice names; raise C0974 if it names none."""
    if not heads.get(choice):
        hint = nearest(choice, heads) if len(heads) <= _MOST_COMPARED else None
        raise error("C0974", f"found no `{choice}` to choose", hint=hint or f"the file has {some(list(heads))}")
    keep_part(draft, part, heads[choice][0].name)


_BUILDERS: dict[str, Callable[[Draft, Topology, Figures], None]] = {
    "tree": _tree,
    "block": _blocks,
    "ring": _rings,
    "torus3d": _tori,
}
