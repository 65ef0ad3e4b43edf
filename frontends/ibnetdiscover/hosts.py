"""Hosts and their adapters: which ports with a cable are of which host, and what each is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from collc.ir.shown import counted, some

from ..importing.model import Draft
from .cables import Cable, End
from .names import adapter, natural
from .text import Node

__all__ = ["Hosts"]


class Hosts:
    """The hosts in the order of the text, and the ports of each as ``HOST/ADAPTER``, sorted by name."""

    def __init__(self, draft: Draft, nodes: Mapping[str, Node], cables: Iterable[Cable]):
        self.nodes = nodes
        #: GUID of an adapter -> its host
        self.host: dict[str, str] = {}
        self.ports: dict[str, list[End]] = {}
        #: port -> `HOST/ADAPTER`
        self.name: dict[End, str] = {}
        cabled = dict[str, list[int]]()
        for cable in cables:
            for guid, port in (cable.a, cable.b):
                cabled.setdefault(guid, []).append(port)
        self._collect(draft, cabled)
        self._name(draft)

    def _collect(self, draft: Draft, cabled: Mapping[str, Sequence[int]]) -> None:
        unnamed = list[Node]()
        for guid, node in self.nodes.items():
            if node.kind != "H":
                continue
            if guid not in cabled:
                draft.fault(f"the adapter `{node.name or guid}` has no cable; it is left out", node.span)
                continue
            found = adapter(node)
            if not found.is_named:
                unnamed.append(node)
            self.host[guid] = found.host
            self.ports.setdefault(found.host, []).extend((guid, port) for port in sorted(cabled[guid]))
        if unnamed:
            first = unnamed[0]
            message = f"{counted(len(unnamed), 'adapter')} whose description names no host: `{first.name}`"
            draft.fault(f"{message}; each is a host, called by its GUID", first.span)

    def _name(self, draft: Draft) -> None:
        """Give each port a name: of its adapter, with the port's number if the adapter has several."""
        for host, ends in self.ports.items():
            adapters = dict[str | None, list[End]]()
            for end in ends:
                adapters.setdefault(adapter(self.nodes[end[0]]).name, []).append(end)
            for name, same in adapters.items():
                self._name_adapter(draft, host, name, same)
            ends.sort(key=lambda end: natural(self.name[end]))

    def _name_adapter(self, draft: Draft, host: str, name: str | None, ends: Sequence[End]) -> None:
        numbers = Counter(port for _, port in ends)
        twice = max(numbers.values()) > 1
        if twice:
            guids = some(list(dict.fromkeys(guid for guid, _ in ends)))
            message = f"several adapters are called `{host} {name}`".replace(" None`", "`")
            draft.fault(f"{message}: {guids}; they are told apart by their GUIDs", self.nodes[ends[-1][0]].span)
        cabled = Counter(guid for guid, _ in ends)
        for guid, port in ends:
            several = cabled[guid] > 1 if twice else len(ends) > 1
            short = f"port{port}" if name is None else f"{name}:{port}" if several else name
            self.name[guid, port] = f"{host}/{short}@{guid}" if twice else f"{host}/{short}"

    def warn_of_fewer(self, draft: Draft) -> None:
        """Add a fault for each host with fewer adapters than most hosts have."""
        sizes = Counter(len(ends) for ends in self.ports.values())
        usual = max(sizes, key=lambda size: (sizes[size], size), default=0)
        if min(sizes, default=0) >= usual:
            return
        short = {host: [self.name[end].partition("/")[2] for end in ends] for host, ends in self.ports.items()}
        known = Counter(name for host, names in short.items() if len(names) == usual for name in names)
        for host, names in short.items():
            if len(names) < usual:
                missing = sorted(known.keys() - names) if len(known) == usual else []
                which = f": {some(missing)} is missing" if len(missing) == 1 else ""
                message = f"the host `{host}` has {counted(len(names), 'adapter')}, most hosts have {usual}{which}"
                draft.fault(message, self.nodes[self.ports[host][0][0]].span)
