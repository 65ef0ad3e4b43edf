"""The torus algorithms as MSCCL-XML, written by the command, read back and executed: all algorithms, all runtimes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Ran
from torus_runs import SHAPES, asked, source

RUNTIMES = ("executor", "msccl", "rccl")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", SHAPES)
def test_files_for_msccl_are_verified(ranks: int, collc: Callable[..., Ran]) -> None:
    """Every algorithm and collective that a runtime carries, by the command; each for another runtime in turn."""
    wanted = [one for one in asked(ranks, 1) if one.kind not in ("gather", "scatter")]
    turn = list(SHAPES).index(ranks)
    runtimes = [RUNTIMES[(number + turn) % 3] for number in range(len(wanted))]
    Path("a.coll").write_text(source(wanted, [f"msccl-xml {{ runtime: {runtime} }}" for runtime in runtimes]))
    done = collc("compile", "a.coll", "-o", "out/")
    assert done.status == 0, done.err
    for number, runtime in enumerate(runtimes):
        verified = collc("verify", f"out/c{number}.xml", "--runtime", runtime)
        assert verified.status == 0, (wanted[number], runtime, verified.out + verified.err)


@pytest.mark.parametrize("ranks", [6])
def test_allreduces_suit_every_runtime(ranks: int, collc: Callable[..., Ran]) -> None:
    wanted = [one for one in asked(ranks) if one.kind == "allreduce" and one.shape == SHAPES[ranks][0]]
    Path("a.coll").write_text(source(wanted))
    for runtime in RUNTIMES:
        done = collc("compile", "a.coll", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", f"{runtime}/")
        assert done.status == 0, done.err
        for number, one in enumerate(wanted):
            verified = collc("verify", f"{runtime}/c{number}.xml", "--runtime", runtime)
            assert verified.status == 0, (one, runtime, verified.out + verified.err)


def test_a_file_that_lacks_a_step_is_not_verified(collc: Callable[..., Ran]) -> None:
    """The check above can fail."""
    Path("a.coll").write_text(source(asked(6)[:1]))
    assert collc("compile", "a.coll", "-t", "msccl-xml", "-o", "a.xml").status == 0
    lines = Path("a.xml").read_text().splitlines(keepends=True)
    reductions = [number for number, line in enumerate(lines) if 'type="rrc"' in line or 'type="re"' in line]
    for number in np.array(reductions)[:: max(1, len(reductions) // 4)].tolist():
        changed = lines[number].replace('type="rrc"', 'type="r"').replace('type="re"', 'type="cpy"')
        Path("b.xml").write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
        assert collc("verify", "b.xml").status != 0


def test_files_of_programs_for_one_operation_are_refused(collc: Callable[..., Ran]) -> None:
    Path("a.coll").write_text(
        "collective c = allreduce on torus(6) { op: max };\n"
        "schedule c using swing { variant: latency, fold: false };\nemit c as msccl-xml;\n"
    )
    done = collc("compile", "a.coll", "-o", "a.xml")
    assert done.status != 0 and "C0607" in done.err and "op: max" in done.err and not Path("a.xml").exists()
