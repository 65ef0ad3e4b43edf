"""A topology of msccl-tools -> network.

``links[destination][source]`` is a number of chunks a step, relative. A switch ``[sources, destinations, bw, name]`` is
no node there, but a limit: all links from the sources to the destinations carry ``bw`` together. The network has a
switch for each limit, with one link of bandwidth ``bw`` that all these links pass. Source: msccl-tools,
msccl/topologies/topology.py and msccl/serialization.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.diagnostic import Source, error

from ..importing.json_fields import Fields, object_in
from ..importing.model import Draft, wrong_name
from .limits import Limit, network_of_limits

if TYPE_CHECKING:
    from ..importing.figures import Figures
    from ..importing.model import Imported
    from ..importing.trees import Json

__all__ = ["network_in"]

_TYPES = ("msccl_type", "sccl_type")
_KNOWN = frozenset({*_TYPES, "name", "links", "switches", "symmetries"})


def network_in(source: Source, figures: Figures) -> Imported:
    """Return the network of one text: a topology, or the one in an algorithm."""
    root = object_in(source, "a topology of msccl-tools")
    kind = next((root[key] for key in _TYPES if key in root), None)
    path: tuple[str, ...] = ()
    if kind == "algorithm" and isinstance(root.get("topology"), dict):
        path, inner = ("topology",), root["topology"]
        assert isinstance(inner, dict)
        root = inner
    elif kind != "topology":
        at = Fields(source, root).place(next((key for key in _TYPES if key in root), "name"))
        hint = "save the topology: `save_msccl_object(topology, 'topo.json')`"
        raise error("C0924", f"found the type `{str(kind)[:40]}` of msccl-tools, needed `topology`", span=at, hint=hint)
    return _Reader(Fields(source, root, path), figures).network()


class _Reader:
    """One topology."""

    def __init__(self, fields: Fields, figures: Figures):
        self.fields, self.figures = fields, figures
        self.draft = Draft("msccl-tools", unit="link")

    def network(self) -> Imported:
        """Return the network; raise CollcError with all mistakes."""
        fields, draft = self.fields, self.draft
        draft.title = fields.text("name")
        size = len(fields.array("links"))
        self.figures.require_within(size, 0, fields.place("links"))
        fields.square("links")
        fields.require()
        links = dict(self._links(size))
        limits = list(self._limits(size))
        fields.require()
        self.figures.require_within(0, len(links), fields.place("links"))
        names = [draft.rank(f"gpu{number}") for number in range(size)]
        network_of_limits(draft, names, links, limits, fields)
        self._report(names, links)
        return draft.finish(fields.place())

    def _links(self, size: int) -> Iterator[tuple[tuple[int, int], Fraction]]:
        rows = self.fields.root["links"]
        assert isinstance(rows, list)
        for b, row in enumerate(rows):
            assert isinstance(row, list)
            for a, value in enumerate(row):
                if value == 0 and value is not False:
                    continue
                bandwidth = self.fields.number("links", b, a)
                if a == b:
                    self.fields.wrong(f"found a link from rank {a} to itself", "links", b, a)
                yield (a, b), bandwidth

    def _limits(self, size: int) -> Iterator[Limit]:
        """Yield the switches of the file."""
        fields = self.fields
        taken = {f"gpu{number}" for number in range(size)}
        for number, switch in enumerate(fields.array("switches") if "switches" in fields else []):
            if not isinstance(switch, list) or len(switch) != 4:
                hint = "a switch is `[sources, destinations, bw, name]`"
                fields.wrong("found no switch of four values", "switches", number, hint=hint)
                continue
            ends = [self._ranks(number, place, switch[place], size) for place in (0, 1)]
            bandwidth = fields.number("switches", number, 2, above=True)
            name = switch[3]
            if not isinstance(name, str) or wrong_name(name) or name in taken:
                fields.wrong("found no name of its own for a switch", "switches", number, 3, code="C0931")
                continue
            taken.add(name)
            yield Limit(number, name, ends[0], ends[1], bandwidth)

    def _ranks(self, number: int, place: int, value: Json, size: int) -> frozenset[int]:
        if isinstance(value, list) and value:
            found = {one for one in value if type(one) is int and 0 <= one < size}
            if len(found) == len(value):
                return frozenset(found)
        needed = f"needed some of the ranks 0 to {size - 1}, each once"
        self.fields.wrong(f"found no list of ranks in a switch, {needed}", "switches", number, place)
        return frozenset()

    def _report(self, names: list[str], links: Mapping[tuple[int, int], Fraction]) -> None:
        """Report what the file has besides the network, and links that differ from their reverse."""
        fields, draft = self.fields, self.draft
        draft.note("bandwidths are relative: chunks in a step, as msccl-tools counts them")
        ignored = [f"`{name[:40]}`" for name in fields.root if name not in _KNOWN]
        if ignored:
            draft.warn("C0942", f"ignored the {'key' if len(ignored) == 1 else 'keys'} {', '.join(ignored[:8])}")
        single = [(a, b) for (a, b), bandwidth in links.items() if links.get((b, a)) != bandwidth]
        if 0 < 4 * len(single) <= len(links):
            for a, b in single:
                message = f"the link from `{names[a]}` to `{names[b]}` differs from the other direction"
                draft.fault(message, fields.place("links", b, a))
