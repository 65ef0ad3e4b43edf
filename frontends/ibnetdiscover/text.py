"""The text of `ibnetdiscover`: nodes, and the cable at each of their ports; wrapped lines are joined.

Two forms: a block for each node (also grouped by chassis, ``-g``, and with ``--full``), and one line for each port
(``--ports``). The formats are those of rdma-core, `infiniband-diags/ibnetdiscover.c`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from collc.ir.diagnostic import Source, Span

from ..importing.model import Draft
from ..importing.pasted import Line, lines

__all__ = ["Fabric", "Node", "Port", "parsed"]

_RATE = r"(?P<width>[0-9]{1,2}x|\?\?) ?(?P<rate>[A-Z]{3}(?:10)?|\?\?\?)(?![\w?])"
_PORT = re.compile(
    r"\s*+\[(?P<port>[0-9]{1,5})\](?:\[ext [0-9]+\])?\s*+(?:\([^()\"\[\]]{0,64}\)\s*+)?"
    r"\"(?P<peer>[^\"]{1,64})\"\s*+\[(?P<peer_port>[0-9]{1,5})\](?:\[ext [0-9]+\])?\s*+"
    r"(?P<guid>\([^()\"\[\]]{0,64}\)\s*+)?(?:#\s*+(?:lid [0-9]+ lmc [0-9]+\s++)?(?:\"(?P<name>[^\"]*)\"\s*+)?"
    rf"(?:lid [0-9]+\s*+)?(?:{_RATE}\s*+)?(?P<rest>.*+))?"
)
_NODE = re.compile(
    r"\s*+(?P<kind>Switch|Ca|Rt)\s++(?P<ports>[0-9]{1,5})\s++\"(?P<id>[^\"]{1,64})\"\s*+(?:#\s*+\"(?P<name>[^\"]*)\".*+)?"
)
#: what may follow the rate: `--full`, and remarks on Xsigo's hardware
_KNOWN_REST = re.compile(r"(?:s=[0-9]+ w=[0-9]+ v=[0-9]+)? ?(?:slot [0-9]+|\(scp\))?\s*")
_LISTED = re.compile(
    r"\s*+(?P<kind>SW|CA|RT|\?\?)\s++[0-9]+\s++(?P<port>[0-9]{1,5})\s++0x(?P<guid>[0-9a-f]{8,16})\s++"
    rf"{_RATE}\s*+(?:-\s++(?P<peer_kind>SW|CA|RT|\?\?)\s++[0-9]+\s++(?P<peer_port>[0-9]{{1,5}})\s++"
    r"0x(?P<peer>[0-9a-f]{8,16})\s++\(\s*+'(?P<name>[^']*)'\s*+-\s*+'(?P<peer_name>[^']*)'\s*+\)|'(?P<alone>[^']*)')\s*+"
)
_GUID = re.compile(r"[SHR]-(?:0x)?[0-9a-fA-F]{8,16}")
#: where people leave lines out
_LEFT_OUT = re.compile(r"\s*+(?:\.{3}|\u2026|\[\.{3}\]|\[\u2026\]|<snip>).{0,20}+")
_IDS = re.compile(r"\s*+(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=")
#: lines of `-g`, and what a terminal has around the output
_HEADINGS = re.compile(r"\s*+(?:Chassis [0-9]+|Chassis Nodes|Non-Chassis Nodes|Hostname:|Spine Nodes|Line Nodes)")
_TERMINAL = re.compile(
    r"\s*+(?:ibwarn:|ibpanic:|iberror:|ibnetdiscover:|(?:src/)?\w++\.c:[0-9]+;|[^\s@]++@\S++.*[$#%>]\s*+$|\[[^\s@]++@)"
)
_COMMAND = re.compile(r"[^$#%>]*+[$#%>]\s.*ibnetdiscover\b")
#: the beginning of a line that begins a record, and of one that goes on with the peer's port
_STARTS = re.compile(
    r"\s*+(?:\[[0-9]+\](?:\[ext [0-9]+\])?\s*+(?:\([^()\"\[\]]{0,64}\)\s*+)?(?:\"|$)|(?:Switch|Ca|Rt)\s++[0-9])"
)
_HEADER_REST = re.compile(r"\s*+(?:(?:base|enhanced|port|lid|lmc|[0-9]+)\s*+)+")
_KINDS = {"Switch": "S", "Ca": "H", "Rt": "R", "SW": "S", "CA": "H", "RT": "R", "??": "H"}
_MOST_JOINED = 4  # lines that one record may be wrapped into
_LONGEST = 2000
_MOST_MISTAKES = 100  # then the text is not read on


class Node(NamedTuple):
    """A node: its kind (S switch, H host adapter, R router), GUID as the text has it, description and line."""

    kind: str
    guid: str
    name: str
    line: Line

    @property
    def span(self) -> Span:
        """The place of its line."""
        return self.line.span(_first(self.line.text))


class Port(NamedTuple):
    """What a node's text says of one port: the peer and its port, the rate as ``(width, rate)``, and the line."""

    node: str
    port: int
    peer: str
    peer_port: int
    rate: tuple[str, str] | None
    line: Line

    @property
    def span(self) -> Span:
        """The place of its line."""
        return self.line.span(_first(self.line.text))


class Fabric:
    """The nodes that have a block, those that only others mention, and all ports, each in the order of the text."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.mentioned: dict[str, Node] = {}
        self.ports: dict[tuple[str, int], Port] = {}

    def all_nodes(self) -> dict[str, Node]:
        """Return the nodes with a block, then the others."""
        return self.nodes | {guid: node for guid, node in self.mentioned.items() if guid not in self.nodes}


def parsed(draft: Draft, sources: Sequence[Source]) -> Fabric:
    """Return what the texts say; text that is not understood is a mistake (C0924) in the draft."""
    fabric = Fabric()
    for source in sources:
        _Reader(draft, fabric).read(source)
    return fabric


class _Reader:
    """Reads one text, line by line; ``node`` is the one whose block is open, ``held`` a record that may go on."""

    def __init__(self, draft: Draft, fabric: Fabric):
        self.draft, self.fabric = draft, fabric
        self.node: str | None = None
        self.held: list[Line] = []

    def read(self, source: Source) -> None:
        """Read all lines."""
        for line in lines(source):
            text = line.text
            match = _PORT.fullmatch(text) if len(text) <= _LONGEST else None
            if match is not None and match["rate"]:  # most lines are whole ports
                self.flush()
                self.add_port(match, line)
            else:
                self.take(line)
                if len(self.draft.mistakes) >= _MOST_MISTAKES:
                    return
        self.flush()

    def take(self, line: Line) -> None:
        """Take a line that is no whole port."""
        text = line.text
        if len(text) > _LONGEST:
            self.wrong(line, f"found a line of {len(text)} characters")
        elif not text.strip():
            self.flush()
        elif _STARTS.match(text):
            self.flush()
            self.held = [line]
        elif self.held and self.goes_on(text):
            self.held.append(line)
        else:
            self.flush()
            self.other(line)

    def goes_on(self, text: str) -> bool:
        """Return whether a line belongs to the held record, which a mail or a terminal wrapped."""
        held = " ".join(line.text for line in self.held)
        if len(self.held) >= _MOST_JOINED or any(
            one.match(text) for one in (_IDS, _LISTED, _LEFT_OUT, _TERMINAL, _COMMAND)
        ):
            return False
        if text.lstrip().startswith("#"):
            return "#" not in held
        whole = _PORT.fullmatch(held) or _NODE.fullmatch(held)
        if whole is None or (whole.re is _PORT and not whole["rate"]):
            return True
        return whole.re is _NODE and bool(_HEADER_REST.fullmatch(text))

    def flush(self) -> None:
        """Add the held record."""
        held, self.held = self.held, []
        if not held:
            return
        texts = [line.text.strip() for line in held]
        for text in dict.fromkeys((" ".join(texts), "".join(texts))):
            if node := _NODE.fullmatch(text):
                return self.add_node(node, held[0])
        ports = [match for text in (" ".join(texts), "".join(texts)) if (match := _PORT.fullmatch(text))]
        if ports:
            return self.add_port(next((match for match in ports if match["rate"]), ports[0]), held[0])
        self.wrong(held[0], "found text that is neither a node nor a port")

    def add_node(self, match: re.Match[str], line: Line) -> None:
        guid = match["id"]
        self.node = guid
        node = Node(_KINDS[match["kind"]], guid, _plain(match["name"] or ""), line)
        first = self.fabric.nodes.setdefault(guid, node)
        if first.name and node.name and first.name != node.name and _GUID.fullmatch(guid):
            message = f"`{guid}` is called `{first.name}` and `{node.name}`; the first one counts"
            self.draft.fault(message, line.span(_first(line.text)))

    def add_port(self, match: re.Match[str], line: Line) -> None:
        if self.node is None:
            self.wrong(line, "found a port before any `Switch`, `Ca` or `Rt`")
            return
        rest = match["rest"]
        if rest and not _KNOWN_REST.fullmatch(rest):
            start = match.start("rest") if match.string == line.text else 0
            self.draft.warn("C0942", f"ignored `{rest.strip()[:80]}` after a port", line.span(start))
        peer = match["peer"]
        known = self.fabric.mentioned.get(peer)
        if known and known.name != match["name"] and match["name"] and not _GUID.fullmatch(peer):
            peer = f"{peer} {_plain(match['name'])}"  # GUIDs that were made unreadable on purpose can be equal
        if peer not in self.fabric.mentioned:
            kind = peer[0] if peer[:2] in ("S-", "H-", "R-") else "H" if match["guid"] else "S"
            self.fabric.mentioned[peer] = Node(kind, peer, _plain(match["name"] or ""), line)
        rate = (match["width"], match["rate"]) if match["rate"] else None
        self.put(Port(self.node, int(match["port"]), peer, int(match["peer_port"]), rate, line))

    def put(self, port: Port) -> None:
        """Add a port; one that is listed again with another peer is a fault."""
        first = self.fabric.ports.setdefault((port.node, port.port), port)
        if (first.peer, first.peer_port) != (port.peer, port.peer_port):
            message = f"port {port.port} of `{port.node}` is listed twice, with different peers; the first one counts"
            self.draft.fault(message, port.span)

    def other(self, line: Line) -> None:
        """Take a line that belongs to no record."""
        text = line.text
        if listed := _LISTED.fullmatch(text):
            self.add_listed(listed, line)
        elif _LEFT_OUT.fullmatch(text):
            self.draft.fault(f"lines are left out here: `{text.strip()}`", line.span(_first(text)))
        elif _TERMINAL.match(text) or _COMMAND.match(text):
            self.draft.warn("C0942", f"ignored `{text.strip()[:80]}`", line.span())
        elif not (_IDS.match(text) or text.lstrip().startswith("#") or _HEADINGS.match(text)):
            self.wrong(line, "found text that is neither a node nor a port")

    def add_listed(self, match: re.Match[str], line: Line) -> None:
        """Add a line of ``--ports``: names of host adapters are those of their ports there."""
        kind = _KINDS[match["kind"]]
        guid = f"{kind}-{match['guid']}"
        name = match["name"] if match["peer"] else match["alone"]
        self.fabric.nodes.setdefault(guid, Node(kind, guid, _plain(name), line))
        if not match["peer"]:
            return
        kind = _KINDS[match["peer_kind"]]
        peer = f"{kind}-{match['peer']}"
        self.fabric.mentioned.setdefault(peer, Node(kind, peer, _plain(match["peer_name"]), line))
        rate = (match["width"], match["rate"])
        self.put(Port(guid, int(match["port"]), peer, int(match["peer_port"]), rate, line))

    def wrong(self, line: Line, message: str) -> None:
        if len(self.draft.mistakes) < 100:
            hint = 'a port is `[1] "S-0002c9020046c588"[33] # "leaf1" lid 2 4xEDR`'
            self.draft.wrong("C0924", message, line.span(_first(line.text)), hint=hint)


def _first(text: str) -> int:
    return len(text) - len(text.lstrip())


def _plain(name: str) -> str:
    """Return a description with single blanks and printable characters only."""
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())
