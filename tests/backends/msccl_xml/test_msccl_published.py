"""Files as others write them: right ones are found right and go everywhere, whatever they look like."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from hypothesis import given
from hypothesis import strategies as st
from msccl_judge import every_split, judge
from msccl_published import PUBLISHED, one_pass_allreduce, presented, tree_allreduce

from collc.backends.msccl_xml import read, verify_text
from collc.backends.msccl_xml.profiles import PROFILES
from collc.backends.msccl_xml.tokens import check_tokens

Collc = Callable[..., Ran]


@pytest.mark.parametrize("name", PUBLISHED)
def test_right_files_are_found_right(name: str) -> None:
    """By both judges: brute force in random orders at all sizes, and verification for each runtime that takes it."""
    text = PUBLISHED[name]
    assert judge(text, "executor", 6) == every_split(text, "executor") == ""
    assert verify_text(text, runtime="executor").ok
    for runtime in PROFILES:
        failed = {c.name for c in verify_text(text, runtime=runtime).failed}
        assert failed <= {f"runtime {runtime}"}


def test_reasons_of_runtimes() -> None:
    """RCCL runs no fused steps; microsoft/msccl takes no maxBytes of 0."""
    fused = {name for name, text in PUBLISHED.items() if not verify_text(text, runtime="rccl").ok}
    assert fused == {"hierarchical", "tree"}
    endless = {name for name, text in PUBLISHED.items() if not verify_text(text, runtime="msccl").ok}
    assert endless == {"rail", "tree"}


@given(st.sampled_from(list(PUBLISHED)), st.integers(0, 2**32))
def test_a_text_that_says_the_same_is_the_same(name: str, seed: int) -> None:
    text, plain = presented(PUBLISHED[name], random.Random(seed)), read(PUBLISHED[name])
    assert check_tokens(text) == []
    found = read(text)
    assert sorted(found.gpus, key=lambda gpu: gpu.id) == list(plain.gpus)
    assert (found.name, found.proto, found.min_bytes, found.max_bytes) == (
        plain.name, plain.proto, plain.min_bytes, plain.max_bytes,
    )  # fmt: skip
    assert found.remarks == ()


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("seed", range(2))
def test_judgement_does_not_depend_on_the_looks(name: str, seed: int) -> None:
    report = verify_text(presented(PUBLISHED[name], random.Random(seed)), runtime="executor")
    plain = verify_text(PUBLISHED[name], runtime="executor")
    assert report.ok and [c.name for c in report.checks] == [c.name for c in plain.checks]


@pytest.mark.parametrize("runtime", PROFILES)
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_file_is_converted_for_every_runtime(collc: Collc, name: str, runtime: str) -> None:
    """What comes out is right there, by both judges; its chunks are those of the file."""
    Path("a.xml").write_text(presented(PUBLISHED[name], random.Random(7)))
    ran = collc("convert", "a.xml", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "b.xml")
    assert (ran.status, ran.err) == (0, "")
    made = Path("b.xml").read_text()
    assert judge(made, runtime, 5) == ""
    assert read(made).nchunksperloop == read(PUBLISHED[name]).nchunksperloop
    assert collc("verify", "b.xml", "--runtime", runtime).status == 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_file_is_simulated_and_becomes_all_else(collc: Collc, name: str) -> None:
    Path("a.xml").write_text(PUBLISHED[name])
    ran = collc("simulate", "a.xml", "--json")
    assert ran.status == 0 and json.loads(ran.out)
    ran = collc("convert", "a.xml", "-t", "mpi-c", "-t", "ir", "-t", "oneccl-xml", "-o", "out/")
    assert (ran.status, ran.err) == (0, "")
    assert sorted(path.suffix for path in Path("out").iterdir()) == [".c", ".h", ".ir", ".xml"]
    assert collc("verify", "out/a.ir", "out/a.xml").status == 0


@pytest.mark.parametrize("ranks", [3, 4])
def test_what_a_chain_of_waits_leaves_out_is_found(ranks: int) -> None:
    """A `nop` that waits for nobody's receive: some order gives another sum. Sends come before receives anyway."""
    lines = one_pass_allreduce(ranks, 1).splitlines(keepends=True)
    waits = [n for n, line in enumerate(lines) if 'type="nop"' in line]
    found = {"0": 0, "1": 0}
    for n in waits[:: max(len(waits) // 8, 1)]:
        lost = lines[n].replace('depid="', 'depid="-1" was="')
        report = verify_text("".join([*lines[:n], lost, *lines[n + 1 :]]), runtime="executor")
        deps = lines[n].split('deps="')[1][0]
        found[deps] += 1
        assert {c.name for c in report.failed} == ({"in place: races"} if deps == "1" else set())
    assert min(found.values()) > 0


def test_a_tree_hangs_where_its_fifos_end() -> None:
    """A leaf sends all before it receives: with more chunks than slots the root must take them meanwhile, and does."""
    for chunks in (1, 8, 9, 30):
        assert verify_text(tree_allreduce(chunks), runtime="executor").ok == (
            judge(tree_allreduce(chunks), "executor", 3) == ""
        )
