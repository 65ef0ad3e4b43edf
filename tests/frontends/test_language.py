"""What a ``.coll`` text means: topologies, collectives, requests, options."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import nets
import numpy as np
import pytest

from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.spec import OptionValue, Spec
from collc.ir.topology import LinkClass, Topology
from collc.ir.validate import structure

GB = 10**9


def load(text: str, **more: object) -> Spec:
    return coll.load("<test>", text=text, **more)  # type: ignore[arg-type]


def topology(text: str, name: str | None = None, **more: object) -> Topology:
    """Return the topology that a text declares, the last one unless named."""
    found = load(text, **more).topologies
    return found[name] if name else list(found.values())[-1]


def codes(text: str, **more: object) -> list[str]:
    with pytest.raises(CollcError) as caught:
        load(text, **more)
    return [d.code for d in caught.value.diagnostics]


def rows(net: Topology) -> list[tuple[str, str, Fraction, Fraction]]:
    """Return the links as names of their ends, bandwidth and latency."""
    return [
        (net.names[a], net.names[b], net.bandwidth(i), net.latency(i))
        for i, (a, b) in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    ]


# ---- the whole

EVERYTHING = """
# a torus, a collective, a schedule
topology pod = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };
collective grads = allreduce on pod { size: 64 MiB, op: sum, dtype: float32 };
schedule grads using bfb;
emit grads as msccl-xml { channels: 4 };

topology dgx {
  param boxes = 2;
  rank gpu[boxes, 8];
  switch nv[boxes], ib;
  for b in 0..boxes, g in 0..8 {
    link gpu[b, g] <-> nv[b] : 300 GB/s, 700 ns;
    link gpu[b, g] <-> ib    : 25 GB/s, 3 us;
  }
}
topology big  = line(circulant(16, {3, 4}), 3);
topology prod = product(uniring(4), uniring(8));
topology ring = uniring(4);
collective parts = allgather on ring;
schedule parts using steps {
  let n = ranks(ring);
  for s in 0..n-1, r in 0..n { at s: send shard (r - s) mod n from r to (r + 1) mod n; }
}
"""


def test_the_language_s_own_examples() -> None:
    spec = load(EVERYTHING)
    assert list(spec.topologies) == ["pod", "dgx", "big", "prod", "ring"]
    assert [(t.num_ranks, t.num_switches, t.num_links) for t in spec.topologies.values()] == [
        (18, 0, 108), (16, 3, 64), (1024, 0, 4096), (32, 0, 64), (4, 0, 4),
    ]  # fmt: skip
    grads = spec.collectives["grads"]
    assert grads.problem.collective == Collective("allreduce", 18, size=64 * 2**20, op="sum", dtype="float32")
    assert (grads.topology, grads.schedule.scheduler, grads.schedule.options) == ("pod", "bfb", ())
    assert [(e.target, [(o.name, o.value) for o in e.options]) for e in grads.emits] == [
        ("msccl-xml", [("channels", 4)])
    ]
    parts = spec.collectives["parts"].schedule
    assert parts.scheduler == "steps" and parts.schedule is not None and len(parts.schedule) == 12
    assert spec.files == ("<test>",) and spec.warnings == ()
    for net in spec.topologies.values():
        assert structure(net) == []


def test_requests_know_their_places() -> None:
    grads = load(EVERYTHING).collectives["grads"]
    spans = [grads.span, grads.schedule.span, grads.emits[0].span, grads.emits[0].options[0].span]
    assert [(s.line, s.column, s.end_column) for s in spans if s] == [(4, 1, 79), (5, 1, 26), (6, 1, 41), (6, 27, 38)]


def test_an_empty_text_is_an_empty_specification() -> None:
    assert load("") == Spec({}, {}, ("<test>",)) == load("# nothing\n\n")


def test_a_collective_without_requests_is_scheduled_automatically() -> None:
    request = load("collective grads = allreduce on torus(3, 3);").collectives["grads"]
    assert (request.schedule.scheduler, request.schedule.schedule, request.emits) == ("auto", None, ())
    assert request.problem.collective == Collective("allreduce", 9)


def test_inline_topologies_go_by_their_expression() -> None:
    spec = load("param n = 3; collective grads = allreduce on product(torus(n, n), complete(2));")
    name = "product(torus(3, 3), complete(2))"
    assert spec.collectives["grads"].topology == name and spec.topologies[name].num_ranks == 18
    assert coll.topology(name).name == name


def test_semicolons_after_blocks_are_optional() -> None:
    bare = EVERYTHING.replace("};", "}")
    assert [str(t.name) for t in load(bare).topologies.values()] == list(load(EVERYTHING).topologies)
    load("topology a { rank x; }; collective c = allgather on a { }; schedule c using steps { }; emit c as mpi-c {}")


# ---- topologies written out


def test_explicit_topologies_number_ranks_by_declaration_last_index_fastest() -> None:
    net = topology(
        "topology t { switch s[2]; rank a[2, 3]; switch u; rank b; link b -> s[1]; link 3 -> a[0, 1]; link u <-> 6; }"
    )
    assert net.names == (
        "a[0, 0]", "a[0, 1]", "a[0, 2]", "a[1, 0]", "a[1, 1]", "a[1, 2]", "b", "s[0]", "s[1]", "u",
    )  # fmt: skip
    assert [row[:2] for row in rows(net)] == [("b", "s[1]"), ("a[1, 0]", "a[0, 1]"), ("u", "b"), ("b", "u")]
    assert (net.num_ranks, net.num_switches, net.unit) == (7, 3, "link")


def test_links_have_bandwidth_and_latency_in_any_order_or_neither() -> None:
    body = "rank g[2]; link g[0] -> g[1] {}; link g[1] -> g[0];"
    unit = Fraction(1)
    assert rows(topology(f"topology t {{ {body.format(': 2, 10 us')} }}")) == [
        ("g[0]", "g[1]", Fraction(2), Fraction(1, 10**5)), ("g[1]", "g[0]", unit, Fraction(0)),
    ]  # fmt: skip
    assert rows(topology(f"topology t {{ {body.format(': 10 us')} }}"))[0][2:] == (unit, Fraction(1, 10**5))
    assert rows(topology(f"topology t {{ {body.format(': 1 ms, 1/3')} }}"))[0][2:] == (
        Fraction(1, 3),
        Fraction(1, 1000),
    )


def test_defaults_are_for_links_that_name_none() -> None:
    """With a default bandwidth a plain number is a multiple of it; the topology is then in bytes per second."""
    body = "{ rank g[2]; link g[0] -> g[1] : 100 GB/s; link g[1] -> g[0] : 1 us; link g[0] -> g[1] : 3; }"
    for text in (f"topology t {body} with {{ bandwidth: 2 GB/s, latency: 5 us }};",
                 f"topology t with {{ latency: 5 us, bandwidth: 2 GB/s }} {body}"):  # fmt: skip
        net = topology(text)
        us = Fraction(1, 10**6)
        assert [row[2:] for row in rows(net)] == [(100 * GB, 5 * us), (2 * GB, us), (6 * GB, 5 * us)]
        assert net.unit == "B/s" and structure(net) == []
    assert [r[2] for r in rows(topology("topology t { rank g[2]; link g[0] <-> g[1]; } with { bandwidth: 3 }"))] == [
        3,
        3,
    ]


def test_expressions_take_defaults_too() -> None:
    net = topology("topology t = torus(3) with { bandwidth: 25 Gbps, latency: 10 us };")
    assert net.classes == (LinkClass(Fraction(3_125_000_000), Fraction(1, 10**5)),) and net.unit == "B/s"
    text = (
        "topology t { rank g[2]; link g[0] -> g[1] : 2; link g[1] -> g[0]; } topology u = t with { bandwidth: 1 GB/s };"
    )
    assert [r[2] for r in rows(topology(text))] == [2 * GB, GB]
    machine = topology("topology m = dgx_a100(2) with { latency: 1 us };")
    assert {c.latency for c in machine.classes} == {Fraction(1, 10**6)}
    assert coll.topology("torus(3) with { latency: 1 us }").classes[0].latency == Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("25 Gbps", 25 * GB // 8), ("8 bps", 1), ("3 KB/s", 3000), ("2TB/s", 2 * 10**12), ("1 GiB/s", 2**30),
        ("100 Gbps / 4", Fraction(25 * GB, 8)), ("2 * 1.5 GB/s", 3 * GB), ("1 GB/s + 500 MB/s", Fraction(3 * GB, 2)),
        ("max(1 GB/s, 2 GB/s)", 2 * GB),
    ],
)  # fmt: skip
def test_bandwidths_are_exact_bytes_per_second(written: str, value: Fraction) -> None:
    assert topology(f"topology t = torus(3) with {{ bandwidth: {written} }};").classes[0].bandwidth == value


def test_loops_conditions_and_variables_build_topologies() -> None:
    """A hypercube, a complete graph and a ring by hand are those of the families."""
    cube = "topology t { rank v[8]; for r in 0..8, b in {1, 2, 4} { link v[r] -> v[xor(r, b)]; } }"
    full = "topology t { param n = 5; rank v[n]; for a in 0..n { for b in 0..n { if a != b { link a -> b; } } } }"
    ring = """topology t { rank v[5]; for i in 0..5 { let next = (i + 1) mod 5; link v[i] -> v[next]; } }"""
    for text, net in ((cube, nets.hypercube(3)), (full, nets.complete(5)), (ring, nets.one_way_ring(5))):
        ours = topology(text)
        assert sorted(zip(ours.src, ours.dst, strict=True)) == sorted(zip(net.src, net.dst, strict=True))


def test_conditions_choose_what_is_declared() -> None:
    text = """topology t {
      param boxes = 2;
      rank gpu[boxes, 2];
      if boxes > 1 { switch ib; for b in 0..boxes, g in 0..2 { link gpu[b, g] <-> ib; } }
      else if boxes == 1 { link gpu[0, 0] <-> gpu[0, 1]; }
    }"""
    assert (topology(text).num_switches, topology(text).num_links) == (1, 8)
    assert (topology(text, params={"boxes": 1}).num_switches, topology(text, params={"boxes": 1}).num_links) == (0, 2)


def test_keywords_are_names_where_a_name_is_expected() -> None:
    net = topology("param rank = 2; topology switch { rank link[rank]; let part = 1; link link[0] -> link[part]; }")
    assert net.name == "switch" and net.names == ("link[0]", "link[1]")


def test_names_of_a_body_hide_those_of_the_file() -> None:
    spec = load("param n = 3; topology a { let n = 2; rank g[n]; } topology b = torus(n);")
    assert [t.num_ranks for t in spec.topologies.values()] == [2, 3]
    assert codes("topology a { let n = 2; rank g[n]; } topology b = torus(n);") == ["C0120"]


# ---- options


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4", 4), ("-2", -2), ("1.5", Fraction(3, 2)), ("2 * k + 1", 7), ("k", 3), ("rccl", "rccl"),
        ('"two words"', "two words"),
        ("reduce-scatter", "reduce-scatter"), ("k-1", 2), ("64 MiB", Fraction(2**26)), ("10 us", Fraction(1, 10**5)),
        ("25 Gbps", Fraction(25 * GB, 8)), ("true", True), ("not true", False), ("{3, 1}", (1, 3)),
        ("0..3", (0, 1, 2)),
        ("{}", ()), ("pod", "pod"), ("1 < 2", True), ("6 / 2", 3), ("ranks(pod)", 9), ("steps", "steps"),
    ],
)  # fmt: skip
def test_option_values(written: str, value: OptionValue) -> None:
    """A word that is no number's name stands for itself; quantities are exact, in bytes, bytes per second, seconds."""
    text = "let k = 3; topology pod = torus(3, 3); collective c = allreduce on pod;"
    (option,) = load(f"{text} emit c as mpi-c {{ some-thing: {written} }};").collectives["c"].emits[0].options
    assert (option.name, option.value) == ("some-thing", value) and type(option.value) is type(value)


def test_one_collective_may_be_emitted_several_times() -> None:
    text = "collective c = allreduce on torus(3); emit c as mpi-c; emit c as msccl-xml {}; emit c as msccl-xml;"
    assert [e.target for e in load(text).collectives["c"].emits] == ["mpi-c", "msccl-xml", "msccl-xml"]


def test_names_of_schedulers_and_targets_are_checked_where_they_are_known() -> None:
    text = "collective c = allreduce on torus(3); schedule c using magic; emit c as paper;"
    assert load(text).collectives["c"].schedule.scheduler == "magic"
    assert codes(text, schedulers=("bfb",), targets={"mpi-c", "ir"}) == ["C0124", "C0125"]


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "gather", "scatter"])
def test_roots_are_ranks_or_their_names(kind: str) -> None:
    net = "topology net { rank gpu[2, 4], last; switch s; } "
    for written, root in (("5", 5), ("gpu[1, 2]", 6), ("last", 8), ("1 + 1", 2)):
        spec = load(f"{net} collective c = {kind} on net {{ root: {written} }};")
        assert spec.collectives["c"].problem.collective.root == root
    assert codes(f"{net} collective c = {kind} on net {{ root: s }};") == ["C0129"]


# ---- safe from threads, the same in every run


def test_many_threads_may_parse_at_once() -> None:
    """Places belong to the text they come from, whoever else is reading."""
    texts = [f"{'#' * i}\n" * i + f"param n{i} = x{i};" for i in range(40)]

    def place(text: str) -> tuple[str, int]:
        with pytest.raises(CollcError) as caught:
            coll.load(text.split()[-1], text=text)
        (found,) = caught.value.diagnostics
        assert found.span is not None
        return found.message, found.span.line

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(place, texts * 3)) == [(f"unknown name `x{i}`", i + 1) for i in range(40)] * 3


@pytest.mark.slow
def test_hash_seeds_change_nothing() -> None:
    program = (
        "from collc.frontends import coll\nfrom collc.ir.diagnostic import CollcError\n"
        "text = 'toplogy a = torus(3; topology b { rank g[3]; lnk g[0] -> h; } emit c as d; let x = ;'\n"
        "try: coll.load('x', text=text)\n"
        "except CollcError as e: print([(str(d), d.hint, d.notes) for d in e.diagnostics])\n"
        "print(coll.topology('product(circulant(7, {3, 2}), mesh(2, 2))').dst.tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 500


def test_limits_hold_for_all_topologies_together() -> None:
    text = "".join(f"topology t{i} = torus(10, 10);" for i in range(9))
    assert codes(text, node_limit=100) == ["C0310"]
    assert len(load(text, node_limit=113).topologies) == 9


def test_arrays_of_topologies_are_plain_columns() -> None:
    net = topology("topology t { rank g[300]; for i in 0..299 { link i <-> i + 1; } }")
    assert net.src.dtype == np.uint16 and not net.src.flags.writeable and net.num_links == 598
