"""Networks that are not connected: what is said of them, and that the links of the hint connect them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import topologies

from collc.frontends.coll import load
from collc.ir.connectivity import not_connected, without_route
from collc.ir.diagnostic import Diagnostic
from collc.ir.topology import Topology


def network(body: str) -> Topology:
    return load("net.coll", text=f"topology net {{ {body} }}").topologies["net"]


def said(topology: Topology, root: int | None = None, outward: bool = True) -> Diagnostic:
    return not_connected(topology, "it needs routes", root, outward).diagnostics[0]


@pytest.mark.parametrize(
    ("body", "text", "direction", "hint"),
    [
        ("rank g[3]; link g[0] <-> g[1]; link g[1] -> g[2];", "from rank g[2] to rank g[0], nor to 1 other rank",
         "the only link between them leads the other way: `g[1] -> g[2]`",
         "write `<->` in place of `->`: `link g[1] <-> g[2];`"),
        ("rank g[4]; link g[0] <-> g[1]; link g[2] <-> g[3];", "from rank g[0] to rank g[2], nor to 1 other rank",
         "no link joins them, in either direction", "add a link: `link g[0] <-> g[2];`"),
        ("rank g[9];", "from rank g[0] to rank g[1], nor to 7 other ranks", "no link joins them, in either direction",
         "add links: `link g[0] <-> g[1];`, `link g[1] <-> g[2];`, `link g[2] <-> g[3];` and 5 more"),
        ("rank g[3]; switch w; for i in 0..3 { link g[i] -> w; }", "from rank g[0] to rank g[1], nor to 1 other rank",
         "all 2 links between them lead the other way, such as `g[1] -> w`",
         "write `<->` in place of `->` in 3 links: `link g[0] <-> w;`, `link g[1] <-> w;` and `link g[2] <-> w;`"),
    ],
)  # fmt: skip
def test_what_is_said(body: str, text: str, direction: str, hint: str) -> None:
    found = said(network(body))
    assert found.message.endswith(text) and direction in found.notes and found.hint == hint


def test_a_root_needs_routes_in_one_direction() -> None:
    line = network("rank g[3]; link g[0] -> g[1]; link g[1] -> g[2];")
    assert (
        said(line, 2).hint == "write `<->` in place of `->` in 2 links: `link g[0] <-> g[1];` and `link g[1] <-> g[2];`"
    )
    assert said(line, 1).hint == "write `<->` in place of `->`: `link g[0] <-> g[1];`"
    assert said(line, 1, outward=False).hint == "write `<->` in place of `->`: `link g[1] <-> g[2];`"


@given(topologies(max_switches=1, max_links=10), st.data())
def test_the_links_of_the_hint_connect_the_network(topology: Topology, data: st.DataObject) -> None:
    hint = "" if topology.is_connected else said(topology).hint or ""
    if not hint or "more" in hint:
        return
    links = list(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
    if "`<->`" in hint:
        pairs = re.findall(r"link (\S+) <-> (\S+);", hint)
        more = [(topology.names.index(b), topology.names.index(a)) for a, b in pairs]
    else:
        ranks = [(int(a), int(b)) for a, b in re.findall(r"ranks (\d+) and (\d+)", hint)]
        more = [*ranks, *((b, a) for a, b in ranks)]
    mended = Topology.from_links("mended", topology.num_ranks, links + more, topology.num_switches)
    assert mended.is_connected, hint
    assert without_route(topology)[1]
