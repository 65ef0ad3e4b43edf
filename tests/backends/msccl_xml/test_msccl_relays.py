"""Files of microsoft/msccl in which some ranks only relay: custom ones, executed as the collective of the members."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_judge import Wrong, run_program
from relayed_programs import ALL_KINDS, among, requested
from sampling import examples
from strategies import connected

import collc
from collc.backends.base import Artifact
from collc.backends.msccl_xml import MscclXml, to_program
from collc.backends.msccl_xml.reader import read
from collc.driver.compile import compile_collective
from collc.driver.result import Settings
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.topology import Topology
from collc.passes.program.participants import participating

TARGET = MscclXml(runtime="msccl")
EVEN = ALL_KINDS[:8]
NETWORK, MEMBERS = "relabel(complete_bipartite(3), {0, 3, 1, 4, 2, 5})", (0, 2, 4)


def relayed(topology: Topology, kind: str, members: tuple[int, ...]) -> tuple[Program, Artifact]:
    """Return the program of the ranks that take part, and its file."""
    one = requested(topology, among(kind, topology.num_ranks, members))
    found = compile_collective(one, [TARGET], Settings())
    assert found.made is not None and all(report.ok for report in found.reports)
    return participating(found.made), found.artifacts[0]


def executed(program: Program, file: Artifact) -> None:
    """Run what the file says; raise Wrong if a rank ends with a wrong number, or a relay touches input or output."""
    loaded = to_program(read(file.text, file.filename), program.collective)
    for seed in range(2):
        run_program(loaded.program, inplace=False, split=1, seed=seed)


@pytest.mark.parametrize("kind", EVEN)
def test_a_custom_file_has_the_collective_of_its_members(kind: str) -> None:
    program, file = relayed(collc.topology(NETWORK), kind, MEMBERS)
    assert program.collective.members == (0, 1, 2) and program.num_ranks == 6
    algorithm = read(file.text, "c.xml")
    assert (algorithm.coll, algorithm.inplace, algorithm.outofplace) == ("custom", 0, 1)
    assert [(gpu.i_chunks, gpu.o_chunks) for gpu in algorithm.gpus[3:]] == [(0, 0)] * 3
    assert "of the first 3; the others only relay" in file.text
    assert ("its `op` reduces" in file.text) == program.collective.reduces
    executed(program, file)


@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_a_relay_that_writes_to_a_buffer_is_seen(kind: str) -> None:
    program, file = relayed(collc.topology(NETWORK), kind, MEMBERS)
    at = file.text.index('<gpu id="3"')
    for old, new in (('dstbuf="s"', 'dstbuf="o"'), ('srcbuf="s"', 'srcbuf="i"')):
        place = file.text.index(old, at)
        wrong = attrs.evolve(file, text=file.text[:place] + new + file.text[place + len(old) :])
        assert not TARGET.check(program, [wrong]).ok
        with pytest.raises((Wrong, CollcError)):
            executed(program, wrong)


@settings(max_examples=examples(24), deadline=None)
@given(connected(2), st.sampled_from(EVEN), st.data())
def test_files_of_random_networks_and_members(topology: Topology, kind: str, data: st.DataObject) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_ranks - 1), min_size=2))))
    try:
        program, file = relayed(topology, kind, members)
    except CollcError as refused:  # gather and scatter have no name without relays
        assert kind in ("gather", "scatter") and refused.diagnostics[0].code == "C0607"
        return
    executed(program, file)


@pytest.mark.parametrize("runtime", ["executor", "rccl"])
def test_runtimes_without_custom_collectives_take_no_relays(runtime: str) -> None:
    target = MscclXml(runtime=runtime)  # type: ignore[arg-type]  # both are runtimes
    assert not target.takes_relays
    program, _ = relayed(collc.topology(NETWORK), "allreduce", MEMBERS)
    with pytest.raises(CollcError, match="C0607"):
        target.emit(program)
