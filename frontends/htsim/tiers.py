"""Fat trees of htsim: hosts, top-of-rack (tor), aggregation (agg) and core switches, from the ports of each tier.

The links are those that htsim builds (`htsim/sim/datacenter/fat_tree_topology.cpp`, class FatTreeTopology). A bandwidth
is that of one link in each direction. The latency of a switch is part of the links that enter it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Related, Source, Span, error, nearest
from collc.ir.frozen import frozen

from ..importing.figures import Figures, decimal_text, gigabits
from ..importing.model import Draft, Imported
from ..importing.numbers import decimal, whole
from ..importing.pasted import Line, Word, lines
from ..importing.several import only

__all__ = ["network"]

_HEAD = {"nodes": "Nodes", "tiers": "Tiers", "podsize": "Podsize"}
_TIER = {
    "downlink_speed_gbps": "Downlink_speed_Gbps", "radix_down": "Radix_Down", "radix_up": "Radix_Up",
    "downlink_latency_ns": "Downlink_Latency_ns", "switch_latency_ns": "Switch_Latency_ns", "bundle": "Bundle",
    "oversubscribed": "Oversubscribed", "queue_up": "Queue_Up", "queue_down": "Queue_Down",
}  # fmt: skip
_DECIMALS = ("downlink_speed_gbps", "downlink_latency_ns", "switch_latency_ns", "oversubscribed")
_MOST_TIERS = 3
_MOST_MISTAKES = 100  # then the text is not read on


@frozen(eq=False)
class _Value:
    """A number and its place, and the place of its key."""

    number: Fraction
    span: Span


@attrs.define
class _Section:
    """The keys of the header, or of one tier, in lower case."""

    values: dict[str, _Value] = attrs.Factory(dict)
    span: Span | None = None

    def number(self, key: str, default: int = 0) -> int:
        return int(self.values[key].number) if key in self.values else default

    def place(self, key: str) -> Span | None:
        return self.values[key].span if key in self.values else self.span


@frozen
class _Tree:
    """The counts of a fat tree; ``cores`` is 0 with two tiers, whose pod is the whole network."""

    hosts: int
    pods: int
    tors: int
    aggs: int
    cores: int


def network(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network; raise CollcError with all mistakes."""
    source = only(sources, "htsim")
    draft = Draft("htsim", hosts=True)
    head, tiers = _sections(draft, source)
    if not draft.mistakes:
        _check_keys(draft, head, tiers)
    if draft.mistakes:
        return draft.finish()  # raises them
    tree = _tree(head, tiers)
    _check_oversubscription(draft, tiers)
    _build(draft, figures, tree, tiers, head.place("nodes"))
    return draft.finish()


# ---- the text


def _sections(draft: Draft, source: Source) -> tuple[_Section, dict[int, _Section]]:
    """Return the header, and the sections of the tiers by number."""
    head = _Section(span=Span(source, 1, 1, 1, 2))
    tiers, current = dict[int, _Section](), head
    for line in lines(source):
        words = line.words
        if not words or words[0].text.startswith("#"):
            continue
        key = words[0].text.lower()
        try:
            if key == "tier":
                current = _Section()  # for the keys of a tier that is wrong
                current = _new_tier(tiers, int(_number(words, line, key).number), line)
            else:
                _add(current, head, words, line)
                _check_rest(draft, words)
        except CollcError as failure:
            draft.take(failure)
        if len(draft.mistakes) >= _MOST_MISTAKES:
            break
    return head, tiers


def _new_tier(tiers: dict[int, _Section], number: int, line: Line) -> _Section:
    if number >= _MOST_TIERS:
        raise error("C0924", f"found tier {number}, needed 0, 1 or 2", span=line.span())
    if number in tiers:
        first = tiers[number].span
        places = [Related("the first one", first)] if first else []
        raise error("C0924", f"found tier {number} twice", span=line.span(), related=places)
    tiers[number] = _Section(span=line.span())
    return tiers[number]


def _add(current: _Section, head: _Section, words: Sequence[Word], line: Line) -> None:
    key, known = words[0].text.lower(), _HEAD if current is head else _TIER
    if key not in known:
        where = "the header" if current is head else "a tier"
        hint = nearest(words[0].text, known.values()) or f"known: {', '.join(known.values())}"
        raise error("C0924", f"found `{words[0]}`, which {where} does not have", span=words[0].span, hint=hint)
    if key in current.values:
        first = Related("the first one", current.values[key].span)
        raise error("C0924", f"found `{words[0]}` twice", span=words[0].span, related=[first])
    current.values[key] = _number(words, line, key)


def _number(words: Sequence[Word], line: Line, key: str) -> _Value:
    if len(words) < 2:
        raise error("C0924", f"found no number after `{words[0]}`", span=line.span())
    number = decimal(words[1].text) if key in _DECIMALS else whole(words[1].text)
    if number is None:
        kind = "a number" if key in _DECIMALS else "a whole number"
        raise error("C0924", f"found `{words[1]}`, needed {kind}", span=words[1].span)
    return _Value(Fraction(number), words[1].span)


def _check_rest(draft: Draft, words: Sequence[Word]) -> None:
    if len(words) > 2 and not words[2].text.startswith("#"):
        draft.warn("C0942", f"ignored the text after `{words[0]} {words[1]}`", words[2].span)


def _check_keys(draft: Draft, head: _Section, tiers: dict[int, _Section]) -> None:
    """Add a mistake for every key that is missing or 0, and for tiers that are missing or too many."""
    for key, name in _HEAD.items():
        _require(draft, head, key, name, "the header")
    count = head.number("tiers")
    if "tiers" in head.values and count not in (2, 3):
        draft.wrong("C0924", f"found {head.values['tiers'].number} tiers, needed 2 or 3", head.place("tiers"))
        return
    for number in range(count):
        if number not in tiers:
            draft.wrong("C0924", f"found no tier {number}, needed {count} tiers", head.place("tiers"))
            continue
        _check_tier(draft, tiers[number], number, number == count - 1)
    for number in sorted(tiers):
        if number >= count and count:
            draft.warn("C0942", f"ignored tier {number}: the file has {count} tiers", tiers[number].span)


def _check_tier(draft: Draft, tier: _Section, number: int, top: bool) -> None:
    for key in ("downlink_speed_gbps", "radix_down", *(() if top else ("radix_up",))):
        _require(draft, tier, key, _TIER[key], f"tier {number}")
    if "bundle" in tier.values and not tier.number("bundle"):
        draft.wrong("C0924", "found a bundle of 0 links, needed 1 or more", tier.place("bundle"))
    if number == 0 and tier.number("bundle", 1) != 1:
        message = "found a bundle at tier 0, where htsim allows one link for each host"
        draft.wrong("C0924", message, tier.place("bundle"))
    if "downlink_latency_ns" not in tier.values:
        source = "htsim takes it from its own options then"
        draft.assume(f"a latency of 0 for the links of tier {number}", source, tier.span)


def _require(draft: Draft, section: _Section, key: str, name: str, where: str) -> None:
    if key not in section.values:
        draft.wrong("C0924", f"found no `{name}`, which {where} needs", section.span)
    elif not section.values[key].number:
        draft.wrong("C0924", f"found `{name} 0`, needed 1 or more", section.place(key))


# ---- the counts


def _tree(head: _Section, tiers: dict[int, _Section]) -> _Tree:
    """Return the numbers of switches; raise C0975 for ports that do not fit together."""
    hosts, podsize = head.number("nodes"), head.number("podsize")
    pods = _quotient(hosts, podsize, head.place("podsize"), "hosts", "pods")
    tors = _quotient(podsize, tiers[0].number("radix_down"), tiers[0].place("radix_down"), "hosts of a pod", "tors")
    bundle = tiers[1].number("bundle", 1)
    ports = tiers[0].number("radix_up")
    aggs = _quotient(ports, bundle, tiers[0].place("radix_up"), "ports up of a tor", "bundles")
    if len(tiers) == 2 or head.number("tiers") == 2:
        if pods > 1:
            message = f"found {pods} pods, needed one: nothing joins the pods of two tiers"
            raise error("C0975", message, span=head.place("podsize"), hint=f"write `Podsize {hosts}`")
        _require_ports(tiers[1], tors * bundle, f"{tors} tors with bundles of {bundle}")
        return _Tree(hosts, 1, tors, aggs, 0)
    _require_ports(tiers[1], tors * bundle, f"{tors} tors in a pod with bundles of {bundle}")
    bundle = tiers[2].number("bundle", 1)
    above = _quotient(
        tiers[1].number("radix_up"), bundle, tiers[1].place("radix_up"), "ports up of an aggregation switch", "bundles"
    )
    _require_ports(tiers[2], pods * bundle, f"{pods} pods with bundles of {bundle}")
    return _Tree(hosts, pods, pods * tors, pods * aggs, aggs * above)


def _quotient(number: int, part: int, span: Span | None, what: str, parts: str) -> int:
    if number % part:
        raise error("C0975", f"found {number} {what}, which {part} does not divide into {parts}", span=span)
    return number // part


def _require_ports(tier: _Section, needed: int, why: str) -> None:
    found = tier.number("radix_down")
    if found != needed:
        message = f"found {found} ports down, needed {needed}: {why}"
        raise error("C0975", message, span=tier.place("radix_down"), hint="is a `Bundle` missing?")


def _check_oversubscription(draft: Draft, tiers: Mapping[int, _Section]) -> None:
    for number in range(len(tiers) - 1):
        tier, above = tiers[number], tiers[number + 1]
        if "oversubscribed" not in tier.values:
            continue
        down = tier.number("radix_down") * tier.values["downlink_speed_gbps"].number
        up = tier.number("radix_up") * above.values["downlink_speed_gbps"].number
        stated = tier.values["oversubscribed"].number
        if down != stated * up:
            ratio = decimal_text(down / up) or f"{down / up}"
            message = f"tier {number} says oversubscription {decimal_text(stated)}, its ports give {ratio}"
            draft.fault(message, tier.place("oversubscribed"))


# ---- the links


def _build(draft: Draft, figures: Figures, tree: _Tree, tiers: Mapping[int, _Section], span: Span | None) -> None:
    bundles = [tiers[number].number("bundle", 1) for number in range(3 if tree.cores else 2)]
    above = tree.aggs // tree.pods
    cables = tree.hosts + tree.tors * above * bundles[1]
    if tree.cores:
        cables += tree.pods * tree.cores * bundles[2]
    figures.require_within(tree.hosts + tree.tors + tree.aggs + tree.cores, 2 * cables, span)
    names = {"host": tree.hosts, "tor": tree.tors, "agg": tree.aggs, "core": tree.cores}
    for kind, count in names.items():
        for number in range(count):
            (draft.rank if kind == "host" else draft.switch)(f"{kind}{number}")
    ports = tree.hosts // tree.tors
    for host in range(tree.hosts):
        _link(draft, tiers, 0, f"host{host}", f"tor{host // ports}")
    for tor in range(tree.tors):
        pod = tor // (tree.tors // tree.pods)
        for agg in range(pod * above, (pod + 1) * above):
            _link(draft, tiers, 1, f"tor{tor}", f"agg{agg}")
    for agg in range(tree.aggs if tree.cores else 0):
        for core in range(agg % above, tree.cores, above):
            _link(draft, tiers, 2, f"agg{agg}", f"core{core}")


def _link(draft: Draft, tiers: Mapping[int, _Section], number: int, low: str, high: str) -> None:
    """Add the links from a node to one above; a link that enters a switch has the switch's latency too."""
    tier = tiers[number]
    bandwidth = gigabits(tier.values["downlink_speed_gbps"].number)
    wire = _nanoseconds(tier, "downlink_latency_ns")
    up = wire + _nanoseconds(tier, "switch_latency_ns")
    down = wire + (_nanoseconds(tiers[number - 1], "switch_latency_ns") if number else 0)
    count, label = tier.number("bundle", 1), f"tier {number}"
    if up == down:
        draft.link(low, high, bandwidth, up, count=count, label=label)
    else:
        draft.link(low, high, bandwidth, up, duplex=False, count=count, label=label)
        draft.link(high, low, bandwidth, down, duplex=False, count=count, label=label)


def _nanoseconds(tier: _Section, key: str) -> Fraction:
    return tier.values[key].number / 10**9 if key in tier.values else Fraction(0)
