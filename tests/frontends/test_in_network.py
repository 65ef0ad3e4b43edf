"""Switches that multicast and reduce: how files declare them, and what operators and formats keep."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest

import collc
from collc.backends.networks import write_network
from collc.ir.diagnostic import CollcError
from collc.ir.graph.isomorphism import automorphisms, isomorphism
from collc.ir.text.parser import parse_ir
from collc.ir.text.printer import print_ir
from collc.ir.topology import Topology

DECLARED = """\
topology net {
  rank gpu[4];
  switch nv[2] : multicast, reduces;
  switch "leaf-1", copies : multicast;
  switch adds : reduces;
  switch plain;
  for g in 0..4 { link gpu[g] <-> nv[g mod 2] : 450 GB/s; link gpu[g] <-> plain : 50 GB/s; }
  link nv[0] <-> "leaf-1" : 50 GB/s; link nv[1] <-> "leaf-1" : 50 GB/s;
  link nv[0] <-> copies : 50 GB/s; link nv[1] <-> copies : 50 GB/s;
  link nv[0] <-> adds : 50 GB/s; link nv[1] <-> adds : 50 GB/s;
}
"""


def named(topology: Topology) -> tuple[list[str], list[str]]:
    multicast, reduces = ([topology.names[node] for node in able] for able in (topology.multicast, topology.reduces))
    return multicast, reduces


def declared() -> Topology:
    text = DECLARED + "collective c = allgather on net;"
    return collc.compile_source(text, target="ir{level=schedule}").schedule.topology


def test_a_declaration_says_what_its_switches_do() -> None:
    assert (["nv[0]", "nv[1]", "leaf-1", "copies"], ["nv[0]", "nv[1]", "adds"]) == named(declared())


def test_the_printer_keeps_it() -> None:
    text = collc.format_source(DECLARED.replace(" : multicast,", ":multicast ,"))
    assert "switch nv[2] : multicast, reduces;" in text and 'switch "leaf-1", copies : multicast;' in text


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("rank gpu[2] : multicast;", "found `:`"),
        ("rank gpu[2]; switch nv : reduce;", "found `reduce` of a switch"),
        ("rank gpu[2]; switch nv : multicasts, reduces;", "found `multicasts` of a switch"),
    ],
)
def test_what_is_no_power_of_a_switch(statement: str, message: str) -> None:
    found = collc.check_source(f"topology net {{ {statement} }}")
    assert [one.message.partition(",")[0] for one in found] == [message]


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ("dgx_h100(1)", []),
        ("dgx_h100(1, 0, 1)", ["nv[0]"]),
        ("dgx_b200(2, 1, 1)", ["nv[0]", "nv[1]"]),
        ("gb200_nvl72(1, 0, 1)", ["nv[0]"]),
        ("in_network(dgx_a100(2), {nv[1]})", ["nv[1]"]),
        ("without(dgx_h100(3, 0, 1), {gpu[0, 0], nv[1]})", ["nv[0]", "nv[2]"]),
        ("subset(dgx_h100(2, 0, 1), {8..16})", ["nv[1]"]),
        ("relabel(dgx_h100(1, 0, 1), {7, 6, 5, 4, 3, 2, 1, 0})", ["nv[0]"]),
        ("degraded(dgx_h100(1, 0, 1), {nv[0]}, 1/2)", ["nv[0]"]),
        ("clustered(dgx_h100(1, 0, 1), 2, 50 GB/s)", ["nv[0, 0]", "nv[1, 0]"]),
        ("transpose(dgx_h100(1, 0, 1))", ["nv[0]"]),
        ("bidirectional(dgx_h100(1, 0, 1))", ["nv[0]"]),
    ],
)
def test_families_and_operators(expression: str, nodes: list[str]) -> None:
    topology = collc.topology(expression)
    assert (nodes, nodes) == named(topology)
    assert parse_ir(print_ir(topology)) == topology
    assert ("multicast" in print_ir(topology)) == bool(nodes)


@pytest.mark.parametrize("argument", ["{gpu[0, 0]}", "{gpu[0, 0] <-> nv[0]}"])
def test_the_operator_takes_switches_only(argument: str) -> None:
    with pytest.raises(CollcError):
        collc.topology(f"in_network(dgx_h100(1), {argument})")


def test_nvls_is_0_or_1() -> None:
    with pytest.raises(CollcError):
        collc.topology("dgx_h100(1, 0, 2)")


def test_the_transpose_exchanges_both() -> None:
    net = declared()
    assert named(net.transpose()) == named(net)[::-1]
    assert net.transpose().transpose().multicast == net.multicast


@pytest.mark.parametrize("form", ["dot", "graphml", "nodelink"])
def test_files_keep_it(form: str, tmp_path: Path) -> None:
    net, path = declared(), tmp_path / "net.graph"
    path.write_text(write_network(net, form), encoding="utf-8")
    assert named(net) == named(collc.topology(f'import "{path}" as {form}'))


@pytest.mark.parametrize("value", ["maybe", 2, [1]])
def test_graphs_say_yes_or_no(value: object) -> None:
    graph = networkx.star_graph(2)
    graph.nodes[0].update(kind="switch", multicast=value)
    with pytest.raises(CollcError, match="needed true or false"):
        collc.topology_from_networkx(graph)


def test_maps_keep_it() -> None:
    plain, able = collc.topology("dgx_h100(2)"), collc.topology("in_network(dgx_h100(2), {nv[0]})")
    assert isomorphism(plain, able) is None and plain != able
    assert all(int(m[16]) == 16 for m in automorphisms(able))
    assert any(int(m[16]) != 16 for m in automorphisms(plain))


def test_copies_of_a_machine_on_a_fabric() -> None:
    source = """
topology box { rank gpu[2]; switch nv : multicast; switch fabric;
  for g in 0..2 { link gpu[g] <-> nv : 450 GB/s; link gpu[g] <-> fabric : 50 GB/s; } }
topology net { rank host[2]; switch ib : reduces; for h in 0..2 { link host[h] <-> ib : 50 GB/s; } }
cluster pod = box on net;
collective c = allgather on pod;
"""
    pod = collc.compile_source(source, target="ir{level=schedule}").schedule.topology
    assert (["host[0]/nv", "host[1]/nv"], ["ib"]) == named(pod)
