"""The six defects of the compilers before this one, A to F of the notes on MSCCL-XML: none of them is ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import programs
import pytest
from commands import Ran
from msccl_files import xml
from msccl_judge import Wrong, judge, load, run
from places import CASES, HELPERS

from collc.backends.msccl_xml import MscclXml, read, verify_text
from collc.ir.diagnostic import CollcError

# ---- A: a fused reduction names the sender's place as its source


def test_a_what_is_written_names_the_receivers_own_source() -> None:
    """Sums that lie elsewhere on every rank: with the sender's place instead, brute force gets another result."""
    program = programs.scratch_sum(4)
    text = MscclXml(inplace=False).emit(program)[0].text
    assert judge(text, "executor", 10) == ""
    algorithm = read(text)
    reductions = [
        step for gpu in algorithm.gpus for block in gpu.threadblocks for step in block.steps if step.type == "rrc"
    ]
    assert len(reductions) == 3
    assert all((step.srcbuf, step.srcoff) == (step.dstbuf, step.dstoff) for step in reductions)


def chain(*local: str) -> str:
    """A reduce of 3 ranks that keeps its sum in another place on each; ``local`` are the sources of its reductions."""
    return xml(
        "reduce", 3,
        [[(-1, 1, 0, ["cpy i0 s6 3", f"rrc {local[0]} s6 3", "cpy s6 o0 3"])],
         [(0, 2, 0, ["cpy i0 s3 3", f"rrc {local[1]} s3 3", "s s3 s6 3"])],
         [(1, -1, 0, ["cpy i0 s0 3", "s s0 s3 3"])]],
        (3, 3, 9),
    )  # fmt: skip


def test_a_a_foreign_source_is_refused() -> None:
    """As those tools write it, with the sender's index in the receiver's buffer; brute force agrees."""
    assert verify_text(chain("s6", "s3")).ok and judge(chain("s6", "s3"), "executor", 5) == ""
    report = verify_text(chain("s3", "s0"))
    assert not report.ok
    assert any(re.search(r"rank 1, threadblock 0, step 1 ", check.detail) for check in report.failed)
    assert judge(chain("s3", "s0"), "executor", 5) != ""


# ---- B: other bytes in every run

_PAIRS = """
import hashlib, sys
sys.path.insert(0, {tests!r})
import programs
import collc
from collc.backends.msccl_xml import MscclXml
texts = [MscclXml(runtime=r).emit(programs.allpairs_allreduce(8, 2))[0].text for r in ("executor", "msccl")]
for runtime in ("executor", "msccl", "rccl"):
    for scheduler, topology in (("bfb", "torus(3,2)"), ("forest", "dgx_a100(1)"), ("ring", "uniring(4)")):
        source = "topology t = %s;\\ncollective c = allreduce on t;\\nschedule c using %s;\\n" % (topology, scheduler)
        texts.append(collc.compile_source(source, target="msccl-xml{{runtime=%s}}" % runtime).artifacts["c"].text)
print(hashlib.sha256("".join(texts).encode()).hexdigest())
"""


@pytest.mark.slow
def test_b_the_same_bytes_whatever_the_hash_seed() -> None:
    code = _PAIRS.format(tests=str(HELPERS))
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "77")
    }
    assert len(found) == 1


# ---- C: a hang that only large calls bring out


def test_c_what_is_written_stops_below_the_size_that_hangs() -> None:
    """Recursive doubling over 8 ranks: at the bound that is written it completes, 8 bytes above it hangs."""
    text = MscclXml().emit(programs.recursive_doubling_allgather(8))[0].text
    assert read(text).max_bytes == 8 << 20
    run(load(text), inplace=False, split=2, seed=1)  # a message of a chunk of 1 MiB holds 2
    with pytest.raises(Wrong, match="hang"):
        run(load(text), inplace=False, split=1, seed=1)
    unlimited = re.sub('maxBytes="[0-9]+"', 'maxBytes="0"', text)
    detail = next(c.detail for c in verify_text(unlimited).failed)
    assert "in calls of 8388616 bytes and more (the largest safe maxBytes is 8388608)" in detail
    assert re.search(r"rank 0, threadblock 2, step 0 waits for a free slot to rank 4", detail)


# ---- D: more steps, threadblocks or chunks than a runtime holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "runtime", "good"),
    [(32, "executor", True), (33, "executor", False), (33, "msccl", True), (128, "msccl", True), (129, "msccl", False)],
)
def test_d_steps_are_counted_before_anything_is_written(ranks: int, runtime: str, good: bool) -> None:
    """A ring of R ranks in one threadblock has 2R - 1 steps: runtimes hold 64 or 256."""
    target, program = MscclXml(runtime=runtime, inplace=False), programs.ring_allreduce(ranks)  # type: ignore[arg-type]
    if not good:
        with pytest.raises(CollcError, match=f"{2 * ranks - 1} steps; .* takes at most {target.profile.max_steps}"):
            target.emit(program)
        return
    (artifact,) = target.emit(program)
    assert {len(block.steps) for gpu in read(artifact.text).gpus for block in gpu.threadblocks} == {2 * ranks - 1}


def test_d_threadblocks_and_counts() -> None:
    with pytest.raises(CollcError, match="72 chunks; a step moves at most 71"):
        MscclXml().emit(programs.broadcast_chain(2, chunks=36))
    with pytest.raises(CollcError, match="rank 0 has 4 threadblocks; at most 3 run at once"):
        MscclXml(threadblocks=3).emit(programs.allpairs_allreduce(4))


# ---- E: a reduce-scatter that half of the runtimes do not know


@pytest.mark.parametrize(
    ("runtime", "spelling"), [("executor", "reducescatter"), ("msccl", "reduce_scatter"), ("rccl", "reducescatter")]
)
def test_e_every_runtime_gets_its_own_spelling(collc: Callable[..., Ran], runtime: str, spelling: str) -> None:
    ran = collc(
        "-", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "rs.xml",
        stdin="collective rs = reduce-scatter on uniring(4);\n",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    text = Path("rs.xml").read_text()
    assert f'coll="{spelling}"' in text
    assert verify_text(text, runtime=runtime).ok
    for other in {"executor", "msccl"} - {runtime, "executor" if runtime == "rccl" else runtime}:
        refused = next(c for c in verify_text(text, runtime=other).checks if c.name == f"runtime {other}")
        assert not refused.ok and "needs coll=" in refused.detail


# ---- F: a failed check that the command does not fail for


def test_f_a_wrong_file_fails_the_command(collc: Callable[..., Ran]) -> None:
    Path("wrong.xml").write_text(chain("s3", "s0"))
    ran = collc("verify", "wrong.xml")
    assert ran.status == 1 and "WRONG" in ran.out and "FAILED" in ran.out
    Path("right.xml").write_text(chain("s6", "s3"))
    assert collc("verify", "right.xml").status == 0


def test_f_of_a_wrong_program_nothing_is_written() -> None:
    wrong = programs.alltoall(3, apart=True)
    with pytest.raises(
        CollcError, match=r"the program is wrong in place: in place: races: .*rank \d, threadblock \d, step \d"
    ):
        MscclXml(inplace=True).emit(wrong)
    assert 'inplace="0" outofplace="1"' in MscclXml().emit(wrong)[0].text


# ---- the option that states the multiprocessors


def test_multiprocessors_on_the_command_line(collc: Callable[..., Ran]) -> None:
    Path("pairs.xml").write_text(MscclXml().emit(programs.allpairs_allreduce(4))[0].text)
    assert collc("verify", "pairs.xml", "--multiprocessors", "4").status == 0
    ran = collc("verify", "pairs.xml", "--multiprocessors", "3", "--json")
    assert ran.status == 1
    assert '"residency"' in ran.out and "rank 0 has 4 threadblocks, but 3 run at once" in ran.out
    assert collc("verify", "pairs.xml", "--multiprocessors", "0").status == 2
    Path("pod.coll").write_text("topology t = uniring(2);\ncollective g = allgather on t;\n")
    ran = collc("verify", "pod.coll", "--multiprocessors", "3")
    assert ran.status == 2 and "[C0018]" in ran.err


def test_multiprocessors_of_a_printed_program(collc: Callable[..., Ran]) -> None:
    program = str(CASES / "verify" / "program.ir")
    ran = collc("verify", program, "--multiprocessors", "2")
    assert ran.status == 1
    assert re.search("FAILED +residency +rank 0 has 3 threadblocks where 2 run at once", ran.out)
    assert collc("verify", program, "--multiprocessors", "3").status == 0
    ran = collc("verify", str(CASES / "verify" / "topology.ir"), "--multiprocessors", "3")
    assert ran.status == 2 and "[C0018]" in ran.err
