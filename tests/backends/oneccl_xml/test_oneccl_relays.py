"""Files in which some ranks only relay: read back, wrong ones refused, and run over oneCCL."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oneccl_runs import executor, oneccl
from relayed_programs import ALL_KINDS, among, compiled
from sampling import EXHAUSTIVE, every, examples
from strategies import connected

import collc
from collc.backends.base import Artifact
from collc.backends.oneccl_xml import OneCclXml
from collc.backends.oneccl_xml.reader import read
from collc.backends.oneccl_xml.run import execute
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.topology import Topology
from collc.passes.program.participants import participating

__all__ = ["executor", "oneccl"]  # fixtures

EVEN = ALL_KINDS[:8]
NETWORK, MEMBERS = "relabel(complete_bipartite(3), {0, 3, 1, 4, 2, 5})", (0, 2, 4)


def relayed(kind: str) -> tuple[Program, Artifact]:
    topology = collc.topology(NETWORK)
    found = compiled(topology, among(kind, topology.num_ranks, MEMBERS), "oneccl-xml")
    assert found.made is not None
    return participating(found.made), found.artifacts[0]


@pytest.mark.parametrize("kind", EVEN)
def test_members_are_read_back(kind: str) -> None:
    program, file = relayed(kind)
    document = read(file.text, "c.xml")
    assert document.collective.members == (0, 1, 2) and len(document.ranks) == 6
    assert [(rank.input, rank.output) for rank in document.ranks[3:]] == [(0, 0)] * 3
    assert "6 ranks, 3 of which only relay" in file.text
    assert OneCclXml().check(program, [file]).ok
    for old, new in (
        ('members="3"', 'members="4"'),
        (' members="3"', ""),
        ('<rank id="3" input="0"', '<rank id="3" input="1"'),
    ):
        assert old in file.text
        planted = attrs.evolve(file, text=file.text.replace(old, new, 1))
        assert not OneCclXml().check(program, [planted]).ok, (old, new)


@pytest.mark.parametrize("members", ["0", "6", "7", "2"])
def test_wrong_numbers_of_members_are_refused(members: str) -> None:
    text = relayed("broadcast")[1].text  # the root is rank 2
    with pytest.raises(CollcError, match="members") as caught:
        read(text.replace('members="3"', f'members="{members}"', 1), "c.xml")
    assert caught.value.diagnostics[0].span is not None


@settings(max_examples=examples(20), deadline=None)
@given(connected(2), st.sampled_from(ALL_KINDS), st.data())
def test_files_of_random_networks_and_members(topology: Topology, kind: str, data: st.DataObject) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_ranks - 1), min_size=2))))
    if kind == "reduce-scatterv":
        return
    found = compiled(topology, among(kind, topology.num_ranks, members), "oneccl-xml")  # reads the file back
    assert all(report.ok for report in found.reports)


@pytest.mark.needs("oneccl")
def test_every_element_over_oneccl(executor: Path, tmp_path: Path) -> None:
    paths = []
    for kind in EVEN if EXHAUSTIVE else every(2, EVEN, 0):
        paths.append(tmp_path / f"{kind}.xml")
        paths[-1].write_text(relayed(kind)[1].text)
    rows = execute(executor, paths, counts=(1, 101), compare=True)
    assert rows and all(row.exact and not row.builtin_times for row in rows)


@pytest.mark.needs("oneccl")
def test_the_executor_refuses_wrong_members(executor: Path, tmp_path: Path) -> None:
    text = relayed("allreduce")[1].text
    for members in ("6", "4", "2"):
        (tmp_path / "wrong.xml").write_text(text.replace('members="3"', f'members="{members}"', 1))
        with pytest.raises(CollcError) as caught:
            execute(executor, [tmp_path / "wrong.xml"], counts=(101,))
        assert caught.value.diagnostics[0].code in ("C0762", "C0763")
