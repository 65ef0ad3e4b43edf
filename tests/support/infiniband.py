"""Texts of ibnetdiscover for fabrics of our own: blocks, chassis, or one line for each port."""

from __future__ import annotations

import attrs

__all__ = ["Fabric", "two_tiers"]


@attrs.define
class Fabric:
    """Nodes by GUID with their descriptions, and what each port says: the peer, its port, and the rate."""

    names: dict[str, str] = attrs.Factory(dict)
    ports: dict[tuple[str, int], tuple[str, int, str]] = attrs.Factory(dict)

    def node(self, kind: str, name: str) -> str:
        """Add a switch (S), host adapter (H) or router (R)."""
        guid = f"{kind}-{len(self.names) + 0x2C900000000:016x}"
        self.names[guid] = name
        return guid

    def cable(self, a: str, i: int, b: str, j: int, rate: str = "4xEDR", back: str | None = None) -> None:
        """Add a cable; ``back`` is the rate that the other end prints."""
        self.ports[a, i] = (b, j, rate)
        self.ports[b, j] = (a, i, rate if back is None else back)

    def text(self, grouped: bool = False, full: bool = False) -> str:
        """Return the blocks, as ``ibnetdiscover`` prints them, or with ``-g`` or ``--full``."""
        head = "#\n# Topology file: generated on Mon Dec 18 12:34:08 2023\n#\n# Initiated from node 00ab port 00ab\n"
        order = sorted(self.names, key=lambda guid: "SHR".index(guid[0]))
        middle = "\nChassis 1 (guid 0x2c9000100d050)\n\n# Spine Nodes" if grouped else ""
        return head + middle + "".join(self._block(guid, grouped, full) for guid in order)

    def _block(self, guid: str, grouped: bool, full: bool) -> str:
        number = guid[2:].lstrip("0")
        word, tag = {"S": ("Switch", "switch"), "H": ("Ca", "ca"), "R": ("Rt", "rt")}[guid[0]]
        chassis = "\t\t# Chassis 1" if grouped else ""
        own = f"({number})" if guid[0] == "S" else ""
        text = f"\nvendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x{number}{chassis}\n{tag}guid=0x{number}{own}\n"
        tail = " enhanced port 0 lid 13 lmc 0" if guid[0] == "S" else ""
        text += f'{word}\t36 "{guid}"\t\t# "{self.names[guid]}"{tail}\n'
        for (node, port), (peer, back, rate) in sorted(self.ports.items()):
            if node == guid:
                text += self._port(guid, port, peer, back, rate, grouped, full)
        return text

    def _port(self, guid: str, port: int, peer: str, back: int, rate: str, grouped: bool, full: bool) -> str:
        external = f"[ext {port}]" if grouped and guid[0] == "S" else ""
        own = f"({guid[2:].lstrip('0')}) " if guid[0] != "S" else ""
        other = f"({peer[2:].lstrip('0')}) " if peer[0] != "S" else ""
        lids = "lid 4 lmc 0 " if guid[0] != "S" else ""
        more = " s=4 w=2 v=8" if full else ""
        rate = f" {rate}" if rate else ""
        return f'[{port}]{external}{own}\t"{peer}"[{back}]{other}\t\t# {lids}"{self.names[peer]}" lid 21{rate}{more}\n'

    def listed(self) -> str:
        """Return the lines of ``ibnetdiscover --ports``."""
        return "".join(
            f"{_side(a, i)} {rate[:2]} {rate[2:]} - {_side(b, j)} ( '{self.names[a]}' - '{self.names[b]}' )\n"
            for (a, i), (b, j, rate) in self.ports.items()
        )


def _side(guid: str, port: int) -> str:
    return f"{({'S': 'SW', 'H': 'CA', 'R': 'RT'})[guid[0]]} {7:5} {port:2} 0x{guid[2:]}"


def two_tiers(
    hosts: int = 4, adapters: int = 2, leaves: int = 2, spines: int = 2, cables: int = 2, up: str = "4xHDR"
) -> Fabric:  # fmt: skip
    """Return hosts on leaves, in turn; each adapter has 4xEDR, each leaf has ``cables`` to each spine."""
    fabric = Fabric()
    tops = [fabric.node("S", f"MF0;spine{n}:MQM8700/U1") for n in range(spines)]
    lows = [fabric.node("S", f"MF0;leaf{n}:MQM8700/U1") for n in range(leaves)]
    for n, low in enumerate(lows):
        for m, top in enumerate(tops):
            for k in range(cables):
                fabric.cable(low, 20 + cables * m + k, top, 1 + cables * n + k, up)
    for host in range(hosts):
        for number in range(adapters):
            adapter = fabric.node("H", f"n{host:03} mlx5_{number}")
            fabric.cable(adapter, 1, lows[host % leaves], 1 + adapters * (host // leaves) + number)
    return fabric
