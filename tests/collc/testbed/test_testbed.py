"""The testbed: what is planned for a topology, and a small network of namespaces where one can be had."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from commands import gone, lives
from hypothesis import given
from hypothesis import strategies as st

import collc
from collc.backends.mpi_c.results import RunResult
from collc.backends.mpi_c.run import run
from collc.backends.mpi_c.toolchain import Mpi
from collc.ir.diagnostic import CollcError
from collc.ir.topology import LinkClass, Topology
from collc.testbed import Network, network, obstacle, plan
from collc.testbed.available import entering
from collc.testbed.measuring import measure, parse
from collc.testbed.mpi import Inside
from collc.testbed.script import build_script, limit_script

RATE = 5_000_000
EXPRESSIONS = (
    "biring(8)", "uniring(5)", "hypercube(3)", "torus(3, 3)", "torus(3, 3, 2)", "circulant(9, {1, 2})",
    "directed_circulant(7)", "kautz(2, 2)", "debruijn(2, 3)", "fat_tree(2)", "leaf_spine(2, 2, 2)",
)  # fmt: skip


# ---- what is planned


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_packet_comes_along_a_shortest_way_over_wires(expression: str) -> None:
    topology = collc.topology(expression)
    planned = plan(topology, RATE)
    joined = {pair for wire in planned.wires for pair in ((wire.a, wire.b), (wire.b, wire.a))}
    for src in range(planned.num_nodes):
        for dst in range(planned.num_nodes):
            path = planned.path(src, dst)
            assert set(pairwise(path)) <= joined
            if src != dst and (src, dst) in joined:
                assert path == [src, dst]  # neighbours talk over their own wire
            elif topology.distances[src, dst] >= 0:
                assert len(path) - 1 == topology.distances[src, dst]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_wires_have_the_rates_of_their_links(expression: str) -> None:
    topology = collc.topology(expression)
    planned = plan(topology, RATE)
    sums: dict[tuple[int, int], Fraction] = {}
    widest = max(kind.bandwidth for kind in topology.classes)
    for link, (a, b) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        sums[a, b] = sums.get((a, b), Fraction(0)) + topology.bandwidth(link) / widest * RATE
    for wire in planned.wires:
        ways = [(wire.a, wire.b, wire.a_to_b), (wire.b, wire.a, wire.b_to_a)]
        known = [sums.get((a, b)) == rate for a, b, rate in ways if (a, b) in sums]
        assert known and all(known) and wire.one_way == (len(known) == 1)
    assert {frozenset((w.a, w.b)) for w in planned.wires} == {frozenset(p) for p in sums if p[0] != p[1]}


def test_links_that_differ_are_scaled_to_the_widest() -> None:
    kinds = LinkClass(Fraction(25)), LinkClass(Fraction(100))
    pod = Topology("pod", 3, [0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2], 0, [0, 0, 1, 1, 0, 0], kinds, "B/s")
    assert {(w.a, w.b): w.a_to_b for w in plan(pod, RATE).wires} == {(0, 1): 1_250_000, (0, 2): 1_250_000, (1, 2): RATE}


def test_parallel_links_are_one_wire() -> None:
    planned = plan(collc.topology("torus(3, 2)"), RATE)
    assert {w.a_to_b for w in planned.wires} == {RATE, 2 * RATE} and len(planned.wires) == 9


def test_one_way_links_have_a_way_back_for_acknowledgements() -> None:
    planned = plan(collc.topology("uniring(4)"), RATE)
    assert all(wire.one_way and {wire.a_to_b, wire.b_to_a} == {RATE, RATE // 20} for wire in planned.wires)
    assert planned.path(0, 3) == [0, 3] and planned.path(0, 2) == [0, 1, 2]


def test_names_and_addresses_are_distinct() -> None:
    planned = plan(collc.topology("fat_tree(4)"), RATE)
    nodes = range(planned.num_nodes)
    for of in (planned.namespace, planned.address, planned.control_address):
        assert len({of(node) for node in nodes}) == len(nodes)
    ends = [(a, b) for w in planned.wires for a, b in ((w.a, w.b), (w.b, w.a))]
    assert len({planned.hardware_address(a, b) for a, b in ends}) == len(ends)
    assert all(len(f"to{node}") < 16 for node in nodes)


def test_the_wires_as_a_topology_take_what_the_model_says() -> None:
    planned = plan(collc.topology("torus(3, 2)"), RATE, Fraction(1, 1000))
    net = planned.network
    assert net.unit == "B/s" and net.num_links == 2 * len(planned.wires)
    assert {net.latency(link) for link in range(net.num_links)} == {Fraction(1, 1000)}
    for src, dst in ((0, 1), (0, 5), (2, 3)):
        links = planned.links(src, dst)
        assert [int(net.src[i]) for i in links] == planned.path(src, dst)[:-1]
        assert int(net.dst[links[-1]]) == dst


@given(st.integers(2, 9), st.integers(1, 4), st.data())
def test_any_connected_network_has_ways(ranks: int, extra: int, data: st.DataObject) -> None:
    ends = st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1))
    links = [(r, (r + 1) % ranks) for r in range(ranks)] + data.draw(st.lists(ends, min_size=extra, max_size=12))
    planned = plan(Topology("any", ranks, [a for a, _ in links], [b for _, b in links]), RATE)
    for src in range(ranks):
        assert all(planned.path(src, dst)[-1] == dst for dst in range(ranks))


@pytest.mark.parametrize(
    ("expression", "rate", "delay", "said"),
    [
        ("torus(16, 16)", RATE, 0, "2 to 128 nodes"),
        ("biring(4)", 10**12, 0, "8e\\+06 Mbit/s"),
        ("biring(4)", 1, 0, "not one that can be limited"),
        ("biring(4)", RATE, 2, "delay of 0 to 1 s"),
    ],
)
def test_what_cannot_be_built_is_said(expression: str, rate: int, delay: int, said: str) -> None:
    with pytest.raises(CollcError, match=said) as found:
        plan(collc.topology(expression), rate, delay)
    assert found.value.diagnostics[0].code == "C0075"


def test_ranks_that_cannot_reach_each_other_are_refused() -> None:
    with pytest.raises(CollcError, match="no route"):
        plan(Topology("cut", 3, [0, 1, 2], [1, 0, 0]), RATE)


def test_the_script_limits_every_wire_at_both_ends() -> None:
    planned = plan(collc.topology("torus(3, 3)"), RATE)
    script = build_script(planned)
    assert len(re.findall("rate 40000000bit burst 10000", script)) == 2 * len(planned.wires) == 36
    assert script.count("type veth peer name to") == 18 and script.endswith("echo built\n")
    assert script.count("route add") == 9 * 8
    delayed = plan(collc.topology("torus(3, 3)"), RATE, Fraction(1, 200))
    assert "tbf" not in build_script(delayed) and limit_script(delayed).count("route add") == 9 * 8


def test_launchers_put_ranks_where_they_belong() -> None:
    path = Path("/opt/mpi")
    given = {"entering": ("enter",), "hosts": ("n0", "n1"), "script": Path("/x/launcher")}
    hydra = Inside(path, "MPICH", "5", **given)  # type: ignore[arg-type]
    command = hydra.command(2, ["./a"])
    assert command[command.index("-hosts") + 1] == "n0,n1" and command[-3:] == ["-n", "2", "./a"]
    assert hydra.environment({})["FI_TCP_IFACE"] == "rid0"
    other = Inside(path, "Open MPI", "5", settings=(("A", "b"),), **given).command(2, ["./a"])  # type: ignore[arg-type]
    assert "n0:1,n1:1" in other and "A=b" in other and other[-1] == "./a"


def test_a_run_that_ended_early_is_no_result() -> None:
    line = "time bfb 1024 0.25 late 0.001 processor 0.01"
    assert parse(f"{line}\n{line}\nend\n", ["bfb"], [1024], 2)[0].median == 0.25
    with pytest.raises(CollcError, match="1 of 2 times of `bfb`"):
        parse(f"{line}\n", ["bfb"], [1024], 2)


def test_an_obstacle_is_said_where_programs_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    obstacle.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    try:
        assert "programs are missing: unshare" in (obstacle() or "")
        with (
            pytest.raises(CollcError, match="no testbed can be built here") as found,
            network(collc.topology("biring(3)")),
        ):
            pass
        assert found.value.diagnostics[0].code == "C0074"
    finally:
        obstacle.cache_clear()


# ---- a real one


@pytest.fixture(scope="module")
def needed() -> None:
    reason = obstacle()
    if reason:
        pytest.skip(f"no testbed here: {reason}")


RING = "topology t = biring(4); collective c = allreduce on t; schedule c using bfb;"


@pytest.mark.slow
def test_a_ring_of_four_takes_what_its_links_take(needed: None, mpich: Mpi) -> None:
    """Bytes go over the wires that the schedule names, and no faster than these are."""
    program = collc.compile_source(RING, target="mpi-c").program
    size, repeats = 1 << 19, 2
    with network(collc.topology("biring(4)"), RATE) as net:
        timing = measure(net, {"bfb": program}, [size], repeats, builtin=False, mpi=mpich)[0]
        carried, control = net.carried(), net.carried_by_control()
    ideal = 2 * 3 / 4 * size / (2 * RATE)
    # A busy machine may take longer; links cannot be faster than they are, but for one burst.
    assert 0.93 * ideal < min(timing.seconds) < 4 * ideal
    assert len(timing.seconds) == repeats and control < 200_000
    expected = (repeats + 1) * 3 / 4 * size
    assert set(carried) == {(r, s % 4) for r in range(4) for s in (r + 1, r + 3)}
    assert all(0.95 * expected < sent < 1.25 * expected for sent in carried.values())


@pytest.mark.slow
def test_other_runs_take_its_mpi_as_any(needed: None, mpich: Mpi) -> None:
    program = collc.compile_source(RING, target="mpi-c").program
    with network(collc.topology("biring(4)"), 4 * RATE) as net:
        result: RunResult = run(program, sizes=[1, 5000], repeats=1, mpi=net.mpi(mpich))
        said = net.mpiexec(["sh", "-c", "echo $PMI_RANK $HELLO"], mpich, {"HELLO": "there"})
    assert result.ok and len(result.rows) == 4
    assert sorted(said.split("\n"))[1:] == [f"{rank} there" for rank in range(4)]


def test_wires_with_a_delay_are_late(needed: None) -> None:
    reason = obstacle(delayed=True)
    if reason:
        pytest.skip(f"no delay here: {reason}")
    echo = (
        "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('10.77.0.3', 99))\nprint('up', flush=True)\n"
    )
    echo += "while True:\n    s.sendto(*s.recvfrom(99))\n"
    ask = "import socket, time\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.settimeout(5)\nbest = 9\n"
    ask += "for k in range(500):\n    t = time.monotonic()\n    s.sendto(b'x', ('10.77.0.3', 99))\n    s.recv(9)\n"
    ask += "    best = min(best, time.monotonic() - t)\n    if best < 0.080: break\nprint(best)\n"
    with network(collc.topology("biring(4)"), RATE, Fraction(1, 100)) as net:
        server = subprocess.Popen([*net.entering(2), sys.executable, "-c", echo], stdout=subprocess.PIPE)
        assert server.stdout is not None and server.stdout.readline() == b"up\n"
        best = float(net.run(0, [sys.executable, "-c", ask]))
        server.kill()
        server.stdout.close()
        assert 0.040 <= best < 0.080  # two hops there, two back
    server.wait()


@pytest.mark.slow
def test_nothing_stays_when_its_process_is_killed(
    needed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even SIGKILL leaves a namespace: all of them are held by a process that reads from the one killed."""
    code = (
        "import collc, time\nfrom collc.testbed import network\n"
        "with network(collc.topology('biring(3)')) as net:\n    print(net.holder, flush=True)\n    time.sleep(60)\n"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    holder = int(process.stdout.readline())
    assert (
        subprocess.run([*entering(holder), "ip", "netns", "list"], capture_output=True, check=True).stdout.count(b"n")
        >= 3
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert gone(holder)
    assert len(list(tmp_path.iterdir())) == 1  # its scratch folder, which the next run removes
    with network(collc.topology("biring(3)")) as first, network(collc.topology("biring(3)")) as second:
        assert set(tmp_path.iterdir()) == {first.folder, second.folder}
    assert not list(tmp_path.iterdir())


def test_an_error_inside_takes_it_down(needed: None) -> None:
    held: list[Network] = []
    with pytest.raises(KeyboardInterrupt), network(collc.topology("biring(3)")) as net:
        held.append(net)
        assert net.folder.exists() and lives(net.holder)
        raise KeyboardInterrupt
    assert not held[0].folder.exists() and not lives(held[0].holder)


def test_a_command_that_fails_inside_is_an_error(needed: None) -> None:
    with network(collc.topology("biring(3)")) as net, pytest.raises(CollcError, match="status 3") as found:
        net.run(1, ["sh", "-c", "echo why >&2; exit 3"])
    assert found.value.diagnostics[0].code == "C0074" and found.value.diagnostics[0].notes == ("why",)
