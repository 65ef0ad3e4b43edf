"""Networks and collectives that spanning trees are not for: one clear message each, and no tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from commands import Ran

from collc.frontends.coll import load
from collc.frontends.coll import topology as expression
from collc.ir.collective import KINDS, ROOTED, Collective
from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.spec import Problem
from collc.ir.topology import LinkClass, Topology
from collc.ir.verify import verify
from collc.passes.synthesis.forest.inputs import COLLECTIVES, check_inputs, require_balanced
from collc.passes.synthesis.forest.scheduler import ForestScheduler


def net(body: str) -> Topology:
    return load("x.coll", text=f"topology t {{ {body} }}").topologies["t"]


def collective(topology: Topology, kind: str = "allgather", root: int = 0) -> Collective:
    return Collective(kind, topology.num_ranks, root=root if kind in ROOTED else None)


def mistake(check: Callable[[], None]) -> Diagnostic:
    with pytest.raises(CollcError) as caught:
        check()
    (found,) = caught.value.diagnostics
    return found


# ---- what is fine


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(
    "network",
    ["torus(3, 3)", "kautz(2, 2)", "dgx_a100(2, 2)", "fat_tree(4, 2)", "complete(1)", "debruijn(2, 2)", "mesh(2, 3)"],
)
def test_sound_networks_pass(network: str, kind: str) -> None:
    topology = expression(network)
    check_inputs(topology, collective(topology, kind))
    require_balanced(topology, range(topology.num_nodes))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("rank g[3]; link g[0] -> g[1] : 3; link g[1] -> g[2] : 1; link g[2] -> g[0] : 2;",
         "rank g[0] of `t` has 2 link units in and 3 link units out"),
        ("rank g[2]; switch w; link g[0] -> w : 2; link w -> g[1] : 2; link g[1] -> g[0] : 1;",
         "rank g[0] of `t` has 1 link unit in and 2 link units out"),
    ],
)  # fmt: skip
def test_networks_that_do_not_balance_are_taken_where_that_is_said(body: str, said: str) -> None:
    """Theorem 10 asks nothing of ranks, but most often a link is missing. One root may have links one way only."""
    found = mistake(lambda: check_inputs(net(body), collective(net(body))))
    assert found.code == "C0581" and said in found.message and "`using forest { unbalanced: true }`" in str(found.hint)
    check_inputs(net(body), collective(net(body)), unbalanced=True)
    check_inputs(net(body), collective(net(body), "broadcast", root=0))
    require_balanced(net(body), range(net(body).num_ranks, net(body).num_nodes))


# ---- what is not


def test_networks_without_routes_between_ranks() -> None:
    cut = net("rank a[2], b[2]; link a[0] <-> a[1]; link b[0] <-> b[1]; link a[1] -> b[0];")
    found = mistake(lambda: check_inputs(cut, collective(cut)))
    assert found.code == "C0301" and "there is no route from rank b[0] to rank a[0]" in found.message
    check_inputs(cut, collective(cut, "broadcast", root=0))  # from a, all are reached
    check_inputs(cut, collective(cut, "reduce", root=2))
    out = mistake(lambda: check_inputs(cut, collective(cut, "broadcast", root=2)))
    assert out.code == "C0301" and "no route from rank b[0] to rank a[0], nor to 1 other rank" in out.message
    back = mistake(lambda: check_inputs(cut, collective(cut, "reduce", root=1)))
    assert back.code == "C0301" and "no route from rank b[0] to rank a[1], nor from 1 other" in back.message
    assert back.notes[-1] == "reduce needs a route to its root from every rank"
    assert {found.hint, out.hint, back.hint} == {"write `<->` in place of `->`: `link a[1] <-> b[0];`"}


def test_ranks_that_are_joined_to_nothing() -> None:
    alone = net("rank g[3]; switch w; link g[0] <-> w; link g[1] <-> w;")
    found = mistake(lambda: check_inputs(alone, collective(alone, "allreduce")))
    assert found.code == "C0301" and "there is no route from rank g[0] to rank g[2]" in found.message


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("link g[0] -> w;", "switch w of `t` has a single link, g[0] -> w, and no link out"),
        ("link w -> g[1];", "switch w of `t` has a single link, w -> g[1], and no link in"),
        ("link g[0] -> w; link g[1] -> w;", "switch w of `t` has 2 links in, and no link out"),
        ("link w -> g[0]; link w -> g[1]; link w -> g[1];", "switch w of `t` has 3 links out, and no link in"),
    ],
)
def test_switches_with_links_one_way_only(links: str, said: str) -> None:
    topology = net(f"rank g[2]; switch v, w; link g[0] <-> v; link g[1] <-> v; {links}")
    found = mistake(lambda: check_inputs(topology, collective(topology)))
    assert (found.code, found.message) == ("C0582", said) and found.hint is not None and "`<->`" in found.hint


def test_switches_that_join_nothing() -> None:
    stub = net("rank g[2]; switch w, idle; link g[0] <-> g[1]; link g[0] <-> w; link g[0] <-> w;")
    found = mistake(lambda: check_inputs(stub, collective(stub)))
    assert (found.code, found.message) == ("C0582", "switch w of `t` has links to g[0] alone")
    check_inputs(net("rank g[2]; switch idle; link g[0] <-> g[1];"), collective(stub))


@pytest.mark.parametrize("kind", ["allgather", "reduce-scatter", "allreduce"])
def test_open_ends_behind_switches_are_not_used(kind: str) -> None:
    """An imported machine with one NIC: its fabric has no other neighbour, and nor has the NIC without the fabric."""
    body = "rank g[2]; switch cpu, nic, fabric; link g[0] <-> cpu; link g[1] <-> cpu; link cpu <-> nic;"
    machine = net(f"{body} link nic <-> fabric;")
    forest = ForestScheduler().run(Problem(machine, collective(machine, kind)))
    assert verify(forest).ok
    used = {link for route in forest.route.tolist() for link in forest.routes.links_of(route)}
    ends = {machine.names[node] for link in used for node in (machine.src[link], machine.dst[link])}
    assert ends == {"g[0]", "g[1]", "cpu"}


def test_switches_that_take_in_more_than_they_let_out() -> None:
    body = "rank g[2]; switch v, w; link g[0] <-> v : 5 GB/s; link g[1] <-> v : 5 GB/s;"
    more = net(f"{body} link g[0] <-> w : 5 GB/s; link g[1] -> w : 300 GB/s; link w -> g[1] : 250.5 GB/s;")
    found = mistake(lambda: require_balanced(more, [3]))
    assert found.message == "switch w of `t` has 305 GB/s in and 255.5 GB/s out, needed as much out as in"
    assert found.code == "C0581"
    less = net("rank g[2]; switch w; link g[0] <-> w; link w -> g[1] : 1/2; link g[1] -> w : 1;")
    assert "2 link units in and 3/2 link units out" in mistake(lambda: require_balanced(less, [2])).message
    loop = net("rank g[2]; switch w; link g[0] <-> w; link g[1] <-> w; link w -> w : 7;")
    require_balanced(loop, range(3))


def test_links_without_bandwidth() -> None:
    nothing = LinkClass(Fraction(0))
    topology = Topology.from_links("t", 2, [(0, 1), (1, 0), (0, 1, nothing), (1, 0, nothing)])
    found = mistake(lambda: check_inputs(topology, collective(topology)))
    assert (found.code, found.message) == ("C0580", "link 0 -> 1 of `t` has no bandwidth, and 1 more")
    check_inputs(Topology.from_links("t", 2, [(0, 1), (1, 0)]), collective(topology))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(COLLECTIVES)))
def test_collectives_that_trees_do_not_do(kind: str) -> None:
    topology = expression("torus(3, 3)")
    found = mistake(lambda: check_inputs(topology, collective(topology, kind)))
    assert found.code == "C0503" and f"`{kind}`" in found.message
    assert found.hint is not None and ("`flow`" if kind == "alltoall" else "`exact`") in found.hint


# ---- the command

_BOX = "topology t {{ rank g[3]; switch w; link g[0] <-> w; link g[1] <-> w; {} }}\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (_BOX.format("link g[2] <-> w : 0;"), "C0315", "found a bandwidth of 0, needed one above 0"),
        (_BOX.format("link g[2] <-> w : 0 GB/s;"), "C0315", "found a bandwidth of 0, needed one above 0"),
        (_BOX.format("link g[2] <-> w;") + "collective c = broadcast on t { root: w };", "C0129",
         "found `w`, a switch of `t`, needed a rank as root"),
        (_BOX.format("") + "collective c = allgather on t;\nschedule c using forest;", "C0301", "g[2]"),
        (_BOX.format("link g[2] <-> w;") + "collective c = alltoall on t;\nschedule c using forest;",
         "C0503", "`flow`"),
        (_BOX.format("link g[2] <-> w; link g[2] <-> g[0]; switch v; link g[0] -> v;")
         + "collective c = allreduce on t;\nschedule c using forest;", "C0582", "switch v of `t` has a single link"),
    ],
)  # fmt: skip
def test_the_command_says_what_is_wrong(collc: Callable[..., Ran], text: str, code: str, said: str) -> None:
    """One message, and a place in the file."""
    ran = collc("compile", "-", "-t", "ir", stdin=text)
    assert ran.status in (1, 3) and "Traceback" not in ran.err and ran.out == ""
    assert ran.err.count("error:") == 1 and f"[{code}]" in ran.err and said in ran.err, ran.err
    assert "<stdin>:" in ran.err
