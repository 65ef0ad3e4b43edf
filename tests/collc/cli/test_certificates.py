"""Certificates in the JSON of ``collc cost``: a reader checks them from the JSON and the links of the network alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commands import Ran
from named_nodes import nodes_of

import collc as api
from collc.ir.topology import Topology

CASES = {
    "allgather": ("dgx_a100(4)", "using forest", "links into box 0: 24 shards over 200 GB/s"),
    "reduce-scatter": ("dgx_h100(2)", "using forest", None),
    "allreduce": ("degraded(dgx_h100(4), {gpu[3, 1]}, 0.5)", "using forest", None),
    "alltoall": ("dgx_a100(2)", "using flow", "links out of box 0: 64 shards over 200 GB/s"),
    "broadcast { root: 0 }": ("leaf_spine(3, 4, 2)", "using forest", None),
    "gather { root: 3 }": ("mi250(2)", "using flow", None),
    "allgatherv { weights: {5, 0, 1, 2} }": ("mesh(2, 2)", "using forest", None),
    "allreduce among {0, 1, 8, 9}": ("dgx_a100(2)", "using forest", None),
}


def certified(run: Callable[..., Ran], folder: Path, network: str, collective: str, schedule: str) -> dict[str, Any]:
    kind, _, options = collective.partition(" ")
    text = f"topology t = {network}; collective c = {kind} on t {options}; schedule c {schedule};"
    (folder / "a.coll").write_text(text)
    ran = run("cost", str(folder / "a.coll"), "--json")
    assert ran.status == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def proved(net: Topology, said: dict[str, Any]) -> Fraction:
    """Return the time per byte that the JSON proves; an AssertionError where it states what is not so."""
    proof = said["certificate"]
    assert proof["text"] == said["bottleneck_cut"]
    assert Fraction(proof["carries"]) / Fraction(proof["bandwidth"]) == Fraction(said["time_per_byte_bound"])
    if proof["kind"] == "cut":
        parts, named = [proof["nodes"]], [proof["named"]]
    else:
        alone = [[rank] for rank in range(net.num_ranks)]
        parts = alone if proof["parts"] == "every rank" else proof["parts"]
        named = (
            [[net.names[rank]] for rank in range(net.num_ranks)] if proof["named"] == "every rank" else proof["named"]
        )
        assert Fraction(proof["carries"]) == 2 * (len(parts) - 1)
    assert [nodes_of(net, each) for each in named] == [set(part) for part in parts]
    here = {"out of": 0, "into": 1}[proof["direction"]]
    width = Fraction(0)
    for part in map(set, parts):
        for link, ends in enumerate(zip(net.src.tolist(), net.dst.tolist(), strict=True)):
            width += net.bandwidth(link) * (ends[here] in part and ends[1 - here] not in part)
    assert width == Fraction(proof["bandwidth"])
    return Fraction(proof["carries"]) / width


def said_amounts(text: str) -> Fraction:
    """Return the bandwidth of a text: ``.. over 6,375 GB/s``."""
    number, unit = re.search(r"over ([\d,./]+) (GB/s|link units?)", text).groups()  # type: ignore[union-attr]
    return Fraction(number.replace(",", "")) * (10**9 if unit == "GB/s" else 1)


@pytest.mark.parametrize("collective", list(CASES))
def test_a_reader_checks_the_certificate(collective: str, collc: Callable[..., Ran], tmp_path: Path) -> None:
    network, schedule, text = CASES[collective]
    said, net = certified(collc, tmp_path, network, collective, schedule), api.topology(network)
    assert proved(net, said) == Fraction(said["time_per_byte_bound"])
    assert text is None or said["bottleneck_cut"] == text
    assert said_amounts(said["bottleneck_cut"]) == Fraction(said["certificate"]["bandwidth"])
    assert len(said["bottleneck_cut"]) <= 110


ANY_PROOF = ({"carries": "7/3"}, {"bandwidth": "1"}, {"direction": "the other"}, {"named": "one less"})


@pytest.mark.parametrize(("collective", "fault"), [
    *(("allgather", fault) for fault in (*ANY_PROOF, {"nodes": "one less"})),
    *(("allreduce", fault) for fault in (*ANY_PROOF, {"parts": "one less"})),
])  # fmt: skip
def test_planted_faults_are_found(
    fault: dict[str, str], collective: str, collc: Callable[..., Ran], tmp_path: Path
) -> None:
    network, schedule, _ = CASES[collective]
    said, net = certified(collc, tmp_path, network, collective, schedule), api.topology(network)
    ((key, value),) = fault.items()
    proof = said["certificate"]
    if value == "one less":
        value = proof[key][1:]
    elif value == "the other":
        value = "into" if proof[key] == "out of" else "out of"
        proof["bandwidth"] = str(Fraction(proof["bandwidth"]) + 1)
    proof[key] = value
    with pytest.raises((AssertionError, KeyError)):
        proved(net, said)


def test_lines_are_short(collc: Callable[..., Ran], tmp_path: Path) -> None:
    """No line of the table is longer than 120 characters, however many nodes the certificate has."""
    for collective, (network, schedule, _) in CASES.items():
        certified(collc, tmp_path, network, collective, schedule)
        ran = collc("cost", str(tmp_path / "a.coll"))
        assert [line for line in ran.out.splitlines() if len(line) > 120] == []
