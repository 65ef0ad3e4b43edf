"""Verifying MSCCL-XML: planted mistakes are named with their place, right files of every style pass."""

from __future__ import annotations

import re

import attrs
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import change, xml
from sampling import examples

from collc.backends.msccl_xml import Algorithm, MscclXml, read, verify_text, write
from collc.backends.msccl_xml.fifos import safe_split, stuck
from collc.backends.msccl_xml.model import Step
from collc.backends.msccl_xml.program import to_program
from collc.backends.msccl_xml.windows import behaviours, splits
from collc.ir.diagnostic import CollcError
from collc.ir.program import Program
from collc.ir.verify import Report


def algorithm_of(program: Program, **options: object) -> Algorithm:
    (artifact,) = MscclXml(**options).emit(program)  # type: ignore[arg-type]
    return read(artifact.text)


def verify(algorithm: Algorithm, **options: str) -> Report:
    return verify_text(write(algorithm), "algo.xml", **options)  # type: ignore[arg-type]


def steps(algorithm: Algorithm, rank: int, block: int) -> list[Step]:
    return list(algorithm.gpus[rank].threadblocks[block].steps)


def with_step(algorithm: Algorithm, rank: int, block: int, number: int, **fields: object) -> Algorithm:
    changed = steps(algorithm, rank, block)
    changed[number] = attrs.evolve(changed[number], **fields)  # type: ignore[arg-type]
    return change(algorithm, rank, block, changed)


def failures(report: Report) -> dict[str, str]:
    assert not report.ok
    return {check.name: check.detail for check in report.failed}


PLACE = r"rank \d+, threadblock \d+, step \d+"

# ---- planted mistakes

RING = algorithm_of(programs.ring_allreduce(4))
PLAIN = algorithm_of(programs.ring_allreduce(4, fused=False))
PAIRS = algorithm_of(programs.allpairs_allreduce(4))
GATHER = algorithm_of(programs.ring_allgather(4))


def swapped(algorithm: Algorithm, rank: int, block: int, first: int, second: int) -> Algorithm:
    changed = steps(algorithm, rank, block)
    changed[first], changed[second] = changed[second], changed[first]
    return change(algorithm, rank, block, changed)


def dropped(algorithm: Algorithm, rank: int, block: int, number: int) -> Algorithm:
    changed = steps(algorithm, rank, block)
    del changed[number]
    return change(algorithm, rank, block, changed)


def repeated(algorithm: Algorithm, rank: int, block: int, number: int) -> Algorithm:
    changed = steps(algorithm, rank, block)
    return change(algorithm, rank, block, [*changed[: number + 1], *changed[number:]])


@pytest.mark.parametrize(
    ("what", "algorithm", "check", "message"),
    [
        ("wrong source offset", with_step(RING, 2, 0, 1, srcoff=3), "single reduction", PLACE),
        ("wrong destination offset", with_step(GATHER, 1, 0, 2, dstoff=3), "postcondition|single reduction", PLACE),
        ("offset out of bounds", with_step(RING, 1, 0, 1, srcoff=4), "bounds", "rank 1, threadblock 0, step 1"),
        ("count out of bounds", with_step(PLAIN, 3, 0, 2, srcoff=3, cnt=2), "bounds", "rank 3, threadblock 0, step 2"),
        ("swapped steps", swapped(RING, 0, 0, 0, 1), "single reduction", PLACE),
        ("swapped fused steps", swapped(RING, 3, 0, 2, 3), "single reduction|postcondition", PLACE),
        ("dropped receive", dropped(GATHER, 3, 0, 6), "messages", "rank 2, threadblock 0, step 5 .*never receives it"),
        ("dropped send", dropped(GATHER, 2, 0, 5), "messages", "rank 3, threadblock 0, step 6 .*never sends it"),
        ("duplicated reduction", repeated(PLAIN, 1, 0, 2), "single reduction", "rank 1, threadblock 0, step 3"),
        ("wrong count", with_step(PLAIN, 2, 0, 1, cnt=2), "messages|bounds", "rank 2, threadblock 0, step 1"),
        ("count of one end", with_step(RING, 2, 0, 4, cnt=2), "messages", "sends .* chunks"),
        ("no count", with_step(RING, 2, 0, 4, cnt=0), "steps", "rank 2, threadblock 0, step 4.*count of at least 1"),
        ("wrong peer", change(RING, 1, 0, send=3), "messages", PLACE),
        (
            "peer out of range", change(RING, 1, 0, send=4), "connections",
            "rank 1, threadblock 0: send peer 4 is out of range",
        ),
        (
            "own rank as peer", change(RING, 1, 0, recv=1), "connections",
            "rank 1, threadblock 0: the recv peer is its own",
        ),
        ("no peer", change(RING, 1, 0, send=-1), "steps", "rank 1, threadblock 0, step 0.* no send peer"),
        ("unconnected channel", change(RING, 1, 0, chan=1), "connections", "uses channel 1, but .* only 0 to 0"),
        (
            "two owners", change(PAIRS, 0, 1, send=1, recv=1), "connections",
            "rank 0, threadblock 1 sends to rank 1 on channel 0",
        ),
        (
            "wait for the wrong block", with_step(PAIRS, 0, 0, 2, depid=1, deps=0), "dependencies",
            "rank 0, threadblock 0, step 2",
        ),
        (
            "wait for no block", with_step(PAIRS, 0, 0, 2, depid=9), "dependencies",
            "rank 0, threadblock 0, step 2.* 9, which",
        ),
        (
            "wait for a step too early", with_step(PAIRS, 0, 0, 2, deps=3), "dependencies",
            "rank 0, threadblock 0, step 2.*ends with step",
        ),
        ("wait dropped", with_step(PAIRS, 0, 0, 2, depid=-1, deps=-1), "races", PLACE),
        (
            "wait for oneself", with_step(PAIRS, 0, 0, 2, depid=0, deps=3), "dependencies",
            "rank 0, threadblock 0, step 2.*hangs",
        ),
        (
            "no flag", with_step(PAIRS, 2, 3, 5, hasdep=0), "dependencies",
            "rank 2, threadblock ., step 2.*sets a flag .*hangs",
        ),
        ("hasdep of 2", with_step(PAIRS, 2, 3, 5, hasdep=2), "steps", "rank 2, threadblock 3, step 5.*must be 0 or 1"),
        (
            "nop without a waiting instruction", with_step(PAIRS, 1, 3, 3, depid=-1), "steps",
            "rank 1, threadblock 3, step 3",
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and len(value) < 40 else "",
)  # fmt: skip
def test_planted_mistakes_are_named(what: str, algorithm: Algorithm, check: str, message: str) -> None:
    """Each is refused by the check it belongs to, which says where."""
    found = failures(verify(algorithm))
    hits = {name: detail for name, detail in found.items() if re.search(check, name)}
    assert hits, f"{what}: {found}"
    assert any(re.search(message, detail) for detail in hits.values()), f"{what}: {hits}"


@pytest.mark.parametrize("algorithm", [RING, PLAIN, PAIRS, GATHER], ids=["ring", "plain", "pairs", "gather"])
def test_without_a_mistake_they_pass(algorithm: Algorithm) -> None:
    report = verify(algorithm)
    assert report.ok, report.failed
    names = [check.name for check in report.checks]
    assert "in place: postcondition" in names and "out of place: postcondition" in names


def test_planted_deadlocks_are_named() -> None:
    """Everybody receives first: nobody ever sends. Everybody sends 3 first: more than FIFOs of 2 hold."""
    waiting = GATHER
    for rank in range(4):
        waiting = swapped(waiting, rank, 0, 1, 2)
    detail = failures(verify(waiting))["deadlock"]
    assert "cycle of 4 waits" in detail
    assert "rank 0, threadblock 0, step 1 waits for data from rank 3, sent at rank 3, threadblock 0, step 2" in detail
    ranks = [
        [(1 - r, 1 - r, 0, [*(f"s i{3 - 3 * r + k} o0 1" for k in range(3)),
                            *(f"r i0 o{3 - 3 * r + k} 1" for k in range(3)), f"cpy i{3 * r} o{3 * r} 3"])]
        for r in range(2)
    ]  # fmt: skip
    detail = failures(verify_text(xml("alltoall", 6, ranks, (6, 6, 0))))["deadlock"]
    assert "FIFOs of depth 2" in detail and "rank 1, threadblock 0, step 2 waits for a free slot to rank 0" in detail


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_location_moved_anywhere_is_refused(data: st.DataObject) -> None:
    """Every location that a step of these programs uses matters."""
    algorithm = data.draw(st.sampled_from([RING, PLAIN, GATHER]))
    rank = data.draw(st.integers(0, 3))
    rows = steps(algorithm, rank, 0)
    number = data.draw(st.integers(0, len(rows) - 1))
    step = rows[number]
    used = {"s": "src", "rrs": "src", "r": "dst", "rcs": "dst"}.get(step.type) or data.draw(
        st.sampled_from(["src", "dst"])
    )
    offset = data.draw(st.integers(0, 3).filter(lambda o: o != getattr(step, f"{used}off")))
    assert not verify(with_step(algorithm, rank, 0, number, **{f"{used}off": offset})).ok


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_a_step_dropped_anywhere_is_refused(data: st.DataObject) -> None:
    algorithm = data.draw(st.sampled_from([RING, PLAIN, PAIRS, GATHER]))
    rank = data.draw(st.integers(0, 3))
    block = data.draw(st.integers(0, len(algorithm.gpus[rank].threadblocks) - 1))
    rows = steps(algorithm, rank, block)
    number = data.draw(st.integers(0, len(rows) - 1))
    report = verify(dropped(algorithm, rank, block, number))
    assert not report.ok
    assert any(re.search(r"rank \d", check.detail) for check in report.failed)


def test_a_declared_buffer_may_not_be_smaller_than_what_is_touched() -> None:
    """The parsers compare the first chunk with the declared chunks only; all of them count here."""
    smaller = attrs.evolve(GATHER, gpus=tuple(attrs.evolve(g, o_chunks=3) for g in GATHER.gpus))
    assert "chunks 3 to 3 of buffer `o`, which has 3 chunks" in failures(verify(smaller))["bounds"]


def test_declared_scratch_is_what_there_is() -> None:
    larger = attrs.evolve(PLAIN, gpus=tuple(attrs.evolve(g, s_chunks=2) for g in PLAIN.gpus))
    assert verify(larger).ok


# ---- numbering


def test_missing_and_double_numbers() -> None:
    first = RING.gpus[0]
    twice = attrs.evolve(RING, gpus=(first, *RING.gpus[:3]))
    assert "`gpu` elements need the ids 0 to 3, each once, found 0 twice" in failures(verify(twice))["numbering"]
    fewer = attrs.evolve(RING, gpus=RING.gpus[:3])
    assert "found no 3" in failures(verify(fewer))["numbering"]
    hole = change(RING, 2, 0, id=1)
    assert "rank 2: `tb` elements need the ids 0 to 0, each once, found 1" in failures(verify(hole))["numbering"]
    assert "execution" in failures(verify(hole))
    empty = attrs.evolve(RING, gpus=(attrs.evolve(first, threadblocks=()), *RING.gpus[1:]))
    assert "rank 0 has no threadblock" in failures(verify(empty))["numbering"]
    for name in ("nchunksperloop", "nchannels", "ngpus"):
        assert (
            f"`{name}` needs to be at least 1, found 0"
            in failures(verify(attrs.evolve(RING, **{name: 0})))["numbering"]
        )


def test_step_numbers_are_the_devices_own() -> None:
    """A wait for `s` of the file is a wait for the device's count: where they differ, it is said."""
    shifted = [attrs.evolve(s, s=s.s + 1) for s in steps(PAIRS, 0, 3)]
    gpu = PAIRS.gpus[0]
    blocks = (*gpu.threadblocks[:3], attrs.evolve(gpu.threadblocks[3], steps=tuple(shifted)))
    moved = attrs.evolve(PAIRS, gpus=(attrs.evolve(gpu, threadblocks=blocks), *PAIRS.gpus[1:]))
    later = with_step(moved, 0, 0, 2, deps=6)
    found = failures(verify(later))["dependencies"]
    assert "rank 0, threadblock 0, step 2" in found and "step 6 of threadblock 3" in found


def waiting(*block: str, flagged: str = "cpy i1 o1 1 !") -> str:
    """A rank whose second threadblock waits for the first one's first step, which sets no flag."""
    first = ["cpy i0 o0 1", flagged, "cpy i2 o2 1"]
    return xml("allreduce", 4, [[(-1, -1, 0, first), (-1, -1, 0, list(block))]], (4, 4, 0))


def test_a_wait_that_a_later_step_ends_is_a_warning() -> None:
    """The device waits for the later step; that is no harm where it comes."""
    report = verify_text(waiting("cpy i3 o3 1 <0:0"))
    assert report.ok
    (found,) = report.warnings
    assert found.code == "C0612" and "rank 0, threadblock 1, step 0 (line 9)" in found.message
    assert "sets no flag (hasdep), so the wait ends with step 1" in found.message


def test_a_wait_that_no_step_ends_is_wrong() -> None:
    found = failures(verify_text(waiting("cpy i3 o3 1 <0:0", flagged="cpy i1 o1 1")))
    assert "neither that step nor a later one sets a flag (hasdep): it hangs" in found["dependencies"]


def test_a_wait_that_a_later_step_ends_too_late_is_wrong() -> None:
    """The later step waits for the waiting threadblock: each for the other."""
    report = verify_text(waiting("cpy i3 o3 1 <0:0 !", flagged="cpy i1 o1 1 <1:0 !"))
    assert not report.warnings
    found = failures(report)
    assert "cycle" in found["deadlock"] and "so the wait ends with step 1" in found["dependencies"]


def test_what_a_runtime_does_not_use_is_not_judged() -> None:
    """Right in place, where the output holds the input; msccl uses it for calls in place alone."""
    gpu = ["cpy o0 s0 1", "cpy s0 o0 1"]

    def ok(runtime: str, inplace: int, outofplace: int) -> bool:
        flags = {"inplace": inplace, "outofplace": outofplace, "maxBytes": 1 << 20}
        return verify_text(xml("allreduce", 1, [[(-1, -1, 0, gpu)]], (1, 1, 1), **flags), runtime=runtime).ok

    assert ok("msccl", 1, 1) and ok("msccl", 1, 0) and ok("executor", 1, 0)
    assert not ok("executor", 1, 1) and not ok("executor", 0, 1)
    assert not ok("msccl", 0, 1) and not ok("msccl", 0, 0)


def test_few_steps_for_many_chunks_are_not_executed() -> None:
    """A short text may name a number of chunks that no memory holds."""
    swap = [[(1 - r, 1 - r, 0, ["s i0 i0 71", "r i0 o0 1000000"])] for r in range(2)]
    report = verify_text(xml("allgather", 1_000_000, swap, (500_000, 1_000_000, 0)))
    found = failures(report)["execution"]
    assert found == "not tried: the steps write at most 142 chunks, but the outputs need 1000000"
    assert "execution" not in failures(verify_text(xml("allgather", 100, swap, (50, 100, 0))))


def test_a_large_wrong_file_is_not_executed_for_every_root(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [[((r + 1) % 9, (r - 1) % 9, 0, ["s i0 i0 1", "r i0 o0 1"])] for r in range(9)]
    text = xml("broadcast", 9, ring, (9, 9, 0))
    assert "right for none" not in str(verify_text(text).checks)
    monkeypatch.setattr("collc.backends.msccl_xml.verify._MOST_EXECUTED", 100)
    (root,) = [check for check in verify_text(text).checks if check.name == "root"]
    assert root.detail == "tried with the 4 likeliest of 9 roots: wrong for all of them"


# ---- merged reductions


def sums(*block: str, scratch: int = 20) -> str:
    """A rank that spreads its input over scratch in one threadblock and adds up in another."""
    fill = [f"cpy i0 s{k} 1" for k in range(scratch)]
    return xml("allreduce", 1, [[(-1, -1, 0, [*fill[:-1], f"{fill[-1]} !"]), (-1, -1, 0, block)]], (1, 1, scratch))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (["re s0 o0 1 <0:19", "re s1 o0 2"], "different counts into one reduction of 2 chunks each"),
        (["re s0 s5 1 <0:19", "nop <0:3", "re s1 s5 1", "cpy i0 o0 1 <0:4"], "the dependency of step 1 has no effect"),
        (["re s0 s5 1 <0:19", "re s5 s5 1"], "the source of step 1 overlaps its destination"),
        (
            ["re s0 s19 1 <0:19", *["cpy i0 o0 1"], *[f"re s{k} s19 1" for k in range(18)]],
            "the parsers merge 18 `re` steps",
        ),
    ],
)
def test_merged_reductions(block: list[str], message: str) -> None:
    if "18" in message:
        # 15 reductions apart from each other first: the run then passes the 16th at its first step and goes on.
        block = [block[0], *["cpy i0 o0 1", "re s0 s19 1"] * 15, "cpy i0 o0 1", *block[2:]]
    assert message in failures(verify_text(sums(*block)))["reductions"]


# ---- the defects of older tools


def test_defect_a_foreign_source_on_a_fused_reduction() -> None:
    """Some tools write the sender's place as src of rrc; the runtimes read the receiver's own. 3 ranks suffice.

    Where the two coincide nobody notices; here rank 2 keeps its sum in scratch 0, rank 1 in 1, rank 0 in 2.
    """

    def chain(*local: str) -> str:
        return xml(
            "reduce", 3,
            [[(-1, 1, 0, ["cpy i0 s6 3", f"rrc {local[0]} s6 3", "cpy s6 o0 3"])],
             [(0, 2, 0, ["cpy i0 s3 3", f"rrc {local[1]} s3 3", "s s3 s6 3"])],
             [(1, -1, 0, ["cpy i0 s0 3", "s s0 s3 3"])]],
            (3, 3, 9),
        )  # fmt: skip

    assert verify_text(chain("s6", "s3")).ok
    found = failures(verify_text(chain("s3", "s0")))
    assert re.search(PLACE, found["out of place: single reduction"])


DOUBLING = [
    [(r ^ d, r ^ d, 0, [*([f"cpy i0 o{r} 1 !"] if d == 1 else []), f"s o{r // d * d} o{r // d * d} {d}{wait}",
                        f"r o{(r ^ d) // d * d} o{(r ^ d) // d * d} {d} !"])
     for d, wait in ((1, ""), (2, " <0:2"), (4, " <1:1"))]
    for r in range(8)
]  # fmt: skip


def test_defect_c_deadlock_that_depends_on_the_size() -> None:
    """8 ranks double, sending 4 chunks before they receive 4: right until a chunk is more than half a tile (1 MiB)."""
    limited = xml("allgather", 8, DOUBLING, (1, 8, 0), maxBytes=8 << 20)
    assert verify_text(limited).ok
    found = failures(verify_text(xml("allgather", 8, DOUBLING, (1, 8, 0), maxBytes=0)))
    assert list(found) == ["deadlock"]
    assert found["deadlock"].startswith(
        "hangs with FIFOs of depth 2: in calls of 8388616 bytes and more (the largest safe maxBytes is 8388608); "
        "with messages of at most 1 chunk: cycle of 2 waits: rank 0, threadblock 2, step 0"
    )
    # Any larger limit is too large, and microsoft/msccl's default of 128 MiB is one.
    assert not verify_text(xml("allgather", 8, DOUBLING, (1, 8, 0), maxBytes=(8 << 20) + 8)).ok
    assert not verify_text(xml("allgather", 8, DOUBLING, (1, 8, 0), maxBytes=None, outofplace=None), runtime="msccl").ok
    # LL holds 8 messages.
    assert verify_text(xml("allgather", 8, DOUBLING, (1, 8, 0), proto="LL")).ok


def test_defect_d_limits_of_steps_threadblocks_and_counts() -> None:
    """What a tool does not count, the runtime does: named for each runtime that refuses it."""
    long = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1"] * 65)]], (1, 1, 0), name="t", maxBytes=2)
    assert "rank 0, threadblock 0 has 65 steps" in failures(verify_text(long, runtime="executor"))["runtime executor"]
    assert verify_text(long, runtime="msccl").ok
    wide = xml("allreduce", 65, [[(-1, -1, 0, [f"cpy i{k} o{k} 1"]) for k in range(65)]], (65, 65, 0))
    assert (
        "rank 0 has 65 threadblocks; RCCL takes at most 64"
        in failures(verify_text(wide, runtime="rccl"))["runtime rccl"]
    )
    assert verify_text(wide, runtime="executor").ok
    large = xml("allreduce", 72, [[(-1, -1, 0, ["cpy i0 o0 72"])]], (72, 72, 0))
    assert "moves 72 chunks; a step moves at most 71" in failures(verify_text(large))["runtime"]


def test_defect_e_spelling_of_reduce_scatter() -> None:
    """No spelling suits all runtimes; each is told what it wants."""
    ranks = [[(-1, -1, 0, ["cpy i0 o0 1"])]]
    old = xml("reduce_scatter", 1, ranks, (1, 1, 0), maxBytes=2)
    assert verify_text(old).ok and verify_text(old, runtime="msccl").ok
    found = failures(verify_text(old, runtime="executor"))["runtime executor"]
    assert 'msccl-executor-nccl needs coll="reducescatter", found "reduce_scatter"' in found
    new = xml("reducescatter", 1, ranks, (1, 1, 0))
    assert verify_text(new).ok and not verify_text(new, runtime="msccl").ok


# ---- runtimes and uses


def test_one_runtime_that_takes_the_file_is_enough() -> None:
    report = verify(RING)
    check = next(c for c in report.checks if c.name == "runtime")
    assert check.ok
    assert check.detail.startswith("executor; not msccl: maxBytes is 0: ")
    assert "not rccl: rank 0, threadblock 0, step 1" in check.detail
    none = failures(verify(attrs.evolve(RING, outofplace=None, max_bytes=0)))["runtime"]
    assert "not executor: `algo` lacks the attribute `outofplace`" in none and "not msccl: " in none


def test_unknown_runtime() -> None:
    with pytest.raises(CollcError, match="unknown runtime `nccl`") as failure:
        verify(RING, runtime="nccl")
    assert failure.value.exit_status == 2


ONE_BUFFER = {
    "allreduce": xml(
        "allreduce", 2, [[(1, 1, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])],
                         [(0, 0, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])]], (2, 0, 2), inplace=1, outofplace=0
    ),
    "allgather": xml(
        "allgather", 2, [[(1, 1, 0, ["s o0 o0 1", "r o1 o1 1"])], [(0, 0, 0, ["s o1 o1 1", "r o0 o0 1"])]],
        (0, 2, 0), inplace=1, outofplace=0,
    ),
    "reduce-scatter": xml(
        "reducescatter", 2, [[(1, 1, 0, ["s i1 i1 1", "rrc i0 i0 1"])], [(0, 0, 0, ["s i0 i0 1", "rrc i1 i1 1"])]],
        (2, 0, 0), inplace=1, outofplace=0,
    ),
    "alltoall": xml(
        "alltoall", 2, [[(1, 1, 0, ["s i1 i1 1", "r i0 i1 1"])], [(0, 0, 0, ["s i0 i1 1", "r i1 i0 1"])]],
        (2, 0, 0), inplace=1, outofplace=0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE_BUFFER)
def test_files_for_in_place_use_that_name_one_buffer_only(kind: str) -> None:
    """They are right in place; out of place the output is never written, so the claim is refused."""
    report = verify_text(ONE_BUFFER[kind])
    assert report.ok, report.failed
    assert report.collective == kind
    assert not any(check.name.startswith("out of place") for check in report.checks)
    claimed = ONE_BUFFER[kind].replace('outofplace="0"', 'outofplace="1"')
    assert any(name.startswith("out of place") for name in failures(verify_text(claimed)))


def test_msccl_takes_inplace_for_exact() -> None:
    """Without `outofplace`, inplace="0" is out of place, and inplace="1" is in place only."""
    old = re.sub(r' (outofplace|minBytes|maxBytes)="\d+"', "", ONE_BUFFER["allreduce"])
    names = [check.name for check in verify_text(old).checks]
    assert verify_text(old).ok and "in place: postcondition" in names
    assert not verify_text(old.replace('inplace="1"', 'inplace="0"')).ok


def test_out_of_place_the_input_is_kept() -> None:
    wrong = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1", "cpy o0 i0 1"])]], (1, 1, 0))
    found = failures(verify_text(wrong))
    assert [name for name in found if "input is not written" in name] == ["out of place: input is not written"]
    assert re.search("rank 0, threadblock 0, step 1", found["out of place: input is not written"])


def test_the_root_is_found() -> None:
    """No file names the root: the one for which the file is right is reported."""
    for program, root in ((programs.broadcast_chain(5, 3), 3), (programs.reduce_chain(5, 2), 2)):
        report = verify(algorithm_of(program))
        assert report.ok
        assert next(c.detail for c in report.checks if c.name == "root") == f"tried with root {root}"
    wrong = with_step(algorithm_of(programs.broadcast_chain(3)), 1, 0, 0, dstoff=0, cnt=2)
    assert not verify(wrong).ok


def test_custom_collectives_are_verified_when_told() -> None:
    custom = write(attrs.evolve(RING, coll="custom"))
    with pytest.raises(CollcError, match="nothing to verify"):
        verify_text(custom)
    told = failures(verify_text(custom, collective="allreduce"))
    assert list(told) == ["runtime"]
    with pytest.raises(CollcError, match="unknown collective"):
        verify_text(custom, collective="allreduc")


def test_empty_windows() -> None:
    for fields, message in (
        ({"min_bytes": 10, "max_bytes": 9}, "no size is within minBytes 10 and maxBytes 9"),
        ({"min_bytes": -1}, "cannot be negative"),
        ({"inplace": 0, "outofplace": 0}, "no call would use the file"),
    ):
        found = failures(verify(attrs.evolve(RING, **fields), runtime="executor"))  # type: ignore[arg-type]
        assert message in found["runtime executor"]


def test_rccl_ends_a_send_without_a_barrier_under_ll() -> None:
    """A step right after it may not write the same chunks at another offset."""

    def exchange(proto: str, at: int) -> str:
        block = ["s s0 s0 2", f"cpy s2 s{at} 2", "r i0 s4 2", "cpy i0 o0 2"]
        ranks = [[(1 - r, 1 - r, 0, ["cpy i0 s0 2", "cpy i0 s2 2", *block])] for r in range(2)]
        return xml("alltoall", 2, ranks, (2, 2, 6), proto=proto)

    def runtime_ok(text: str, runtime: str) -> bool:
        return next(c.ok for c in verify_text(text, runtime=runtime).checks if c.name == f"runtime {runtime}")

    assert not runtime_ok(exchange("LL", 1), "rccl")
    assert runtime_ok(exchange("LL", 0), "rccl")
    assert runtime_ok(exchange("Simple", 1), "rccl")
    assert runtime_ok(exchange("LL", 1), "executor")


# ---- sizes of messages


def test_message_sizes_over_a_window() -> None:
    """8 chunks: at 8 MiB a chunk is 1 MiB, so a message of Simple holds two; at 1 byte the cap of 71."""
    tile = 1 << 21
    assert splits(8, 0, 0, tile) == (71, 71)
    assert splits(8, 0, 8 << 20, tile) == (2, 71)
    assert splits(8, (8 << 20) + 8, None, tile) == (1, 1)
    assert splits(1, 1, tile // 3, tile) == (3, 71)


@given(st.lists(st.integers(1, 71), min_size=1, max_size=4), st.integers(1, 71), st.integers(0, 70))
def test_every_behaviour_is_tried_once(counts: list[int], low: int, more: int) -> None:
    high = min(low + more, 71)
    tried = behaviours(counts, low, high)
    cut = [tuple(-(-c // a) for c in counts) for a in range(low, high + 1)]
    assert {tuple(-(-c // a) for c in counts) for a in tried} == set(cut)
    assert len(tried) == len(set(cut))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_longer_messages_never_deadlock_where_shorter_do_not(data: st.DataObject) -> None:
    """If no run with A chunks a message gets stuck, none with more does: the claim behind a largest safe size."""
    counts = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = [data.draw(st.permutations(range(2 * len(counts)))) for _ in range(2)]
    offsets = [sum(counts[:k]) for k in range(len(counts))]
    total = sum(counts)
    ranks = []
    for r in range(2):
        # Sends stay in order, receives stay in order; how they interleave is arbitrary.
        sends = iter([f"s i{(1 - r) * total + o} o0 {c}" for o, c in zip(offsets, counts, strict=True)])
        receives = iter([f"r i0 o{(1 - r) * total + o} {c}" for o, c in zip(offsets, counts, strict=True)])
        ranks.append([(1 - r, 1 - r, 0, [next(sends) if k < len(counts) else next(receives) for k in order[r]])])
    text = xml("alltoall", 2 * total, ranks, (2 * total, 2 * total, 0))
    algorithm = read(text)
    loaded = to_program(algorithm)
    for depth in (1, 2, 3):
        free = [not stuck(loaded, depth, split) for split in range(1, 7)]
        assert free == sorted(free)
    free = [not stuck(loaded, 2, split) for split in range(1, 72)]
    assert safe_split(loaded, algorithm) == (free.index(True) + 1 if any(free) else None)
