"""The target ``chakra``: its files by another decoder, times by a model of ASTRA-sim, and what its reader refuses."""

from __future__ import annotations

import builtins
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any  # Any: arguments of an import

import attrs
import programs
import pytest
from astra_sim import duration, network_of, read_trace
from built_programs import direct
from planted_files import compiled

import collc as compiler
from collc.backends.base import Artifact
from collc.backends.chakra import Chakra, schema
from collc.backends.chakra.trace import nodes_of
from collc.backends.networks import write_network
from collc.backends.simulator import simulate
from collc.ir.diagnostic import CollcError

LINKS = "with { bandwidth: 25 GB/s, latency: 500 ns }"
#: network, collective, scheduler; bytes
COMPARED = [
    ("biring(8)", "allreduce", "bfb"), ("torus(4, 4)", "allreduce", "bfb"), ("torus(4, 4)", "allreduce", "swing"),
    ("torus(4, 3, 3)", "allgather", "bfb"), ("complete(6)", "allreduce", "bfb"), ("complete(8)", "alltoall", "flow"),
    ("hamming(2, 4)", "allgather", "bfb"), ("product(biring(4), complete(3))", "allreduce", "bfb"),
]  # fmt: skip


def compiled_for(net: str, collective: str, scheduler: str, size: int) -> compiler.CollectiveResult:
    text = f"topology t = {net} {LINKS};\ncollective c = {collective} on t {{ size: {size} B }};\n"
    return compiler.compile_source(f"{text}schedule c using {scheduler};", target="chakra")["c"]


@pytest.mark.parametrize("size", [4096, 1 << 26])
@pytest.mark.parametrize("net, collective, scheduler", COMPARED, ids=[f"{n} {s}" for n, _, s in COMPARED])
def test_astra_sim_takes_as_long_as_collc(net: str, collective: str, scheduler: str, size: int) -> None:
    """Within 5 % of the simulator, by ASTRA-sim's congestion-aware model on the network file that collc writes."""
    result = compiled_for(net, collective, scheduler, size)
    network = write_network(result.schedule.topology, "astra-sim-gib")
    found = duration([file.data for file in result.artifacts], network)
    ours = simulate(result.schedule).time(size) * 10**9
    assert abs(found / ours - 1) < Fraction(1, 20), (found, float(ours))


def test_the_congestion_unaware_backend_agrees_where_links_carry_one_message() -> None:
    result = compiled_for("torus(4, 4)", "allreduce", "ring", 1 << 26)
    network = write_network(result.schedule.topology, "astra-sim-gib")
    found = duration([file.data for file in result.artifacts], network, aware=False)
    assert abs(found / (simulate(result.schedule).time(1 << 26) * 10**9) - 1) < Fraction(1, 20)
    shared = compiled_for("torus(4, 4)", "allreduce", "bfb", 1 << 26)  # links carry several: that model lets them pass
    files = [file.data for file in shared.artifacts]
    assert duration(files, network, aware=False) < Fraction(9, 10) * duration(files, network)


def test_a_switch_that_stores_and_forwards_takes_longer() -> None:
    """ASTRA-sim sends a message on when all of it is at the switch; collc's model cuts through."""
    result = compiled_for("leaf_spine(1, 8, 1)", "allgather", "ring", 1 << 26)
    network = write_network(result.schedule.topology, "astra-sim-gib")
    found = duration([file.data for file in result.artifacts], network)
    assert found / (simulate(result.schedule).time(1 << 26) * 10**9) > Fraction(6, 5)


def test_bandwidths_are_those_that_astra_sim_computes_with() -> None:
    topology = compiler.topology(f"biring(4) {LINKS}")
    assert [pytest.approx(25)] == [one.rate for one in network_of(write_network(topology, "astra-sim-gib"))]
    assert [pytest.approx(25 * 2**30 / 10**9)] == [one.rate for one in network_of(write_network(topology, "astra-sim"))]


def test_another_decoder_reads_the_same_nodes() -> None:
    program = programs.ring_allreduce(3, 2)
    for rank, (file, nodes) in enumerate(zip(Chakra(size=600).emit(program), nodes_of(program, 600), strict=True)):
        found = read_trace(file.data)
        assert [(n.id, 5 if n.sends else 6, n.deps) for n in nodes] == [(s.id, s.kind, s.deps) for s in found]
        for node, step in zip(nodes, found, strict=True):
            ends = (rank, node.peer) if node.sends else (node.peer, rank)
            expected = dict(zip(("comm_src", "comm_dst"), ends, strict=True))
            expected |= {"is_cpu_op": 0, "comm_size": node.size, "comm_tag": node.tag}
            assert step.attributes == expected
            assert node.size == 100 * program.count.max()


@pytest.mark.parametrize("kind", ["allreduce", "allgather", "alltoall", "broadcast", "reduce-scatter", "gather"])
def test_collectives_of_every_kind(kind: str) -> None:
    program = direct(kind, 4, 2, root=1)
    report = Chakra().check(program, Chakra().emit(program))
    assert report.ok and len(report.checks) > 5, report.failed


def test_files_are_named_after_ranks_and_begin_with_the_size() -> None:
    result = compiled_for("biring(3)", "allreduce", "ring", 3 << 20)
    assert [".0.et", ".1.et", ".2.et"] == [file.ending for file in result.artifacts]
    assert b"3145728" in result.artifacts[0].data[:120]
    assert b"\x0d\n\x05bytes" not in Chakra().emit(programs.ring_allreduce(3, 2))[0].data[:4]


def test_a_receive_waits_for_nothing_twice() -> None:
    """Of a threadblock only the last receive is waited for: traces stay as large as their programs."""
    program = compiled("torus(4, 4)", "allreduce on t", "bfb", target="chakra")
    blocks = len(program.block_rank) // program.num_ranks
    assert max(len(node.deps) for nodes in nodes_of(program, 1 << 20) for node in nodes) <= blocks


@pytest.mark.parametrize("change", ["size", "tag", "peer", "deps", "sends", "lost"])
def test_a_wrong_node_is_found_without_the_writer(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from collc.backends.chakra import target

    program = programs.ring_allreduce(4, 2)
    right = target.nodes_of

    def wrong(*given: Any) -> Any:
        traces = list(right(*given))
        own = list(traces[1])
        at = next(k for k, node in enumerate(own) if node.sends and node.deps)
        new = {
            "size": {"size": own[at].size + 1}, "tag": {"tag": 99}, "peer": {"peer": 0}, "deps": {"deps": ()},
            "sends": {"sends": False}, "lost": {},
        }[change]  # fmt: skip
        own[at] = attrs.evolve(own[at], **new)
        traces[1] = tuple(own[:at] + own[at + 1 :]) if change == "lost" else tuple(own)
        return tuple(traces)

    monkeypatch.setattr(target, "nodes_of", wrong)
    report = Chakra().check(program, Chakra().emit(program))
    assert not report.ok and {"nodes", "as written"}.isdisjoint({check.name for check in report.failed[:1]})


def test_bytes_that_are_no_trace_are_refused() -> None:
    program = programs.ring_allreduce(3, 2)
    files = list(Chakra().emit(program))
    for data in (b"", b"\xff" * 9, files[0].data[:-1], files[1].data, files[0].data + b"\x02\x08\x09"):
        changed = [Artifact(files[0].filename, data.decode("utf-8", "surrogateescape"), "chakra"), *files[1:]]
        assert not Chakra().check(program, changed).ok
    assert not Chakra().check(program, files[:2]).ok


def test_wrong_requests_are_refused() -> None:
    for text, target, code in (
        ("collective c = allreduce on biring(4) among {0, 1};", "chakra", "C0831"),
        ("collective c = allreduce on biring(4);", "chakra{size=0}", "C0832"),
    ):
        with pytest.raises(CollcError) as found:
            compiler.compile_source(text, target=target)
        assert code == found.value.diagnostics[0].code


def test_without_protobuf_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("google"):
            raise ImportError(name)
        return found(name, *rest)

    schema.messages.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CollcError) as problem:
        Chakra().emit(programs.ring_allreduce(3, 2))
    monkeypatch.undo()
    assert "C0830" == problem.value.diagnostics[0].code and "collc[chakra]" in str(problem.value.diagnostics[0].hint)


def test_protobuf_loads_only_when_a_trace_is_written() -> None:
    code = "import sys, collc.backends.chakra; print('google' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False\n" == ran.stdout


def test_files_on_disk_are_the_bytes(tmp_path: Path) -> None:
    result = compiled_for("biring(3)", "allreduce", "ring", 3000)
    (tmp_path / "a.coll").write_text("collective c = allreduce on biring(3) { size: 3000 B };\nschedule c using ring;")
    compiler.compile(str(tmp_path / "a.coll"), target="chakra").write(f"{tmp_path}/out/")
    assert [file.data for file in result.artifacts] == [p.read_bytes() for p in sorted((tmp_path / "out").iterdir())]
