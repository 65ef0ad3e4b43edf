"""What the safety analysis says of sizes, residency and use, held against runs of the files by brute force."""

from __future__ import annotations

import re

import attrs
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import change, xml
from msccl_judge import DEPTH, TILE, Wrong, judge, load, run, split_of
from sampling import examples

from collc.backends.msccl_xml import Algorithm, MscclXml, read, verify_text, write
from collc.backends.msccl_xml.profiles import PROFILES
from collc.backends.msccl_xml.windows import first_size, size_unit, smallest_call
from collc.ir.diagnostic import CollcError
from collc.ir.verify import Report


def failures(report: Report) -> dict[str, str]:
    return {check.name: check.detail for check in report.failed}


def detail(report: Report, name: str) -> str:
    return next(check.detail for check in report.checks if check.name == name)


def exchange(count: int, repeats: int = 1, **head: object) -> str:
    """Two ranks that send each other ``repeats`` messages of ``count`` chunks before either receives any."""
    half = count * repeats
    ranks = [
        [(1 - r, 1 - r, 0, [
            f"cpy i{r * half + k * count} o{r * half + k * count} {count}" for k in range(repeats)
        ] + [f"s i{(1 - r) * half + k * count} o{r * half + k * count} {count}" for k in range(repeats)]
          + [f"r i0 o{(1 - r) * half + k * count} {count}" for k in range(repeats)])]
        for r in range(2)
    ]  # fmt: skip
    return xml("alltoall", 2 * half, ranks, (2 * half, 2 * half, 0), **head)


def hangs(text: str, runtime: str, size: int) -> bool:
    """Whether a call of this size hangs, by brute force."""
    file = load(text)
    split = split_of(runtime, file.head["proto"], int(file.head["nchunksperloop"]), size)
    try:
        run(file, inplace=False, split=split, seed=size % 97)
    except Wrong as problem:
        assert "hang" in str(problem)
        return True
    return False


# ---- sizes from which on a file hangs


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(1, 71), st.integers(1, 3), st.sampled_from(["executor", "msccl", "rccl"]),
    st.sampled_from(["Simple", "LL", "LL128"]),
)  # fmt: skip
def test_the_size_from_which_on_a_file_hangs(count: int, repeats: int, runtime: str, proto: str) -> None:
    """At the largest safe size it completes, at the next one it hangs: the device agrees to the byte."""
    wide = {"msccl": 1 << 40}.get(runtime, 0)
    text = exchange(count, repeats, proto=proto, maxBytes=wide)
    said = detail(verify_text(text, runtime=runtime), "deadlock")
    unit, tile = 2 * count * repeats, TILE[runtime][proto]
    if repeats * count <= DEPTH[proto]:
        assert "at any size" in said
        assert not hangs(text, runtime, unit * (2 * tile))
        return
    if repeats > DEPTH[proto]:
        assert said.startswith(f"hangs with FIFOs of depth {DEPTH[proto]}")
        assert f"in calls of {unit} bytes and more: " in said
        assert hangs(text, runtime, unit)
        return
    first, largest = (int(n) for n in re.findall(r"(?:calls of|maxBytes is) (\d+)", said)[:2])
    largest -= runtime == "msccl"  # there maxBytes is the first size the file is not used for
    assert first - unit <= largest < first and first % unit == 0
    assert not hangs(text, runtime, first - unit)
    assert hangs(text, runtime, first)
    # with that bound it is right, with the next size let in it is not
    bound = largest + (runtime == "msccl")
    assert verify_text(exchange(count, repeats, proto=proto, maxBytes=bound), runtime=runtime).ok
    assert not verify_text(
        exchange(count, repeats, proto=proto, maxBytes=first + (runtime == "msccl")), runtime=runtime
    ).ok


@pytest.mark.parametrize("runtime", ["executor", "msccl"])
@pytest.mark.parametrize("proto", ["Simple", "LL"])
def test_the_bound_that_is_written_is_the_largest(runtime: str, proto: str) -> None:
    """What the target writes is what verification calls the largest, in the runtime's own terms."""
    program = programs.recursive_doubling_allgather(8, 1 if proto == "Simple" else 4)
    (artifact,) = MscclXml(runtime=runtime, proto=proto).emit(program)  # type: ignore[arg-type]
    algorithm = read(artifact.text)
    assert algorithm.max_bytes
    wider = attrs.evolve(algorithm, max_bytes=algorithm.max_bytes + size_unit(algorithm))
    said = failures(verify_text(write(wider), runtime=runtime))["deadlock"]
    assert f"the largest safe maxBytes is {algorithm.max_bytes}" in said
    last = algorithm.max_bytes - (runtime == "msccl")
    assert not hangs(artifact.text, runtime, last)
    assert hangs(artifact.text, runtime, last // size_unit(algorithm) * size_unit(algorithm) + size_unit(algorithm))


def test_runtimes_whose_tiles_differ_are_told_apart() -> None:
    """Under LL a tile is half as large with RCCL: so is the size from which on a file hangs."""
    said = failures(verify_text(exchange(16, proto="LL")))["deadlock"]
    assert "in calls of 524320 bytes and more (the largest safe maxBytes is 524288) for executor" in said
    assert "in calls of 262176 bytes and more (the largest safe maxBytes is 262144) for rccl" in said


def test_a_bound_below_the_hang_is_told_what_it_guards_against() -> None:
    report = verify_text(exchange(4, maxBytes=1 << 20), runtime="executor")
    assert report.ok
    assert detail(report, "deadlock") == (
        "completes with FIFOs of depth 2; in larger calls it hangs: in calls of 8388616 bytes and more "
        "(the largest safe maxBytes is 8388608)"
    )


def test_a_bound_between_two_calls_lets_in_the_smaller_only() -> None:
    """Sizes are multiples of 8 bytes here: a bound of 7 bytes more admits no other call."""
    for beyond, good in ((0, True), (7, True), (8, False)):
        assert verify_text(exchange(4, maxBytes=(8 << 20) + beyond), runtime="executor").ok == good


def test_a_window_that_holds_hanging_calls_only() -> None:
    said = failures(verify_text(exchange(4, minBytes=1 << 24)))["deadlock"]
    assert "in calls of 16777216 bytes and more, which is every call" in said


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from(["allreduce", "allgather"]))
def test_sizes_are_those_of_calls_that_exist(chunks: int, ranks: int, smallest: int, coll: str) -> None:
    """The first size for a split is the least multiple of the unit that moves so few chunks at once."""
    text = xml(coll, chunks * ranks, [[(-1, -1, 0, [])]] * ranks, (chunks, chunks * ranks, 0), minBytes=smallest)
    algorithm, tile = read(text), PROFILES["executor"].tile["Simple"]
    total = chunks * ranks
    assert size_unit(algorithm) == total
    assert smallest_call(algorithm) % total == 0 and smallest_call(algorithm) >= max(smallest, 1)
    for split in (1, 2, 7, 70):
        first = first_size(algorithm, tile, split)
        assert first % total == 0
        assert split_of("executor", "Simple", total, first) <= split
        assert first - total < smallest_call(algorithm) or split_of("executor", "Simple", total, first - total) > split


# ---- every finding: rank, threadblock, step, reason, size

PAIRS = read(MscclXml().emit(programs.allpairs_allreduce(4))[0].text)


def with_step(algorithm: Algorithm, rank: int, block: int, number: int, **fields: object) -> Algorithm:
    steps = list(algorithm.gpus[rank].threadblocks[block].steps)
    steps[number] = attrs.evolve(steps[number], **fields)  # type: ignore[arg-type]
    return change(algorithm, rank, block, steps)


@pytest.mark.parametrize(
    ("algorithm", "check"),
    [
        (with_step(PAIRS, 0, 0, 0, srcoff=3), "single reduction"),
        (with_step(PAIRS, 0, 0, 2, depid=-1, deps=-1), "races"),
        (with_step(PAIRS, 0, 0, 3, dstoff=4), "bounds"),
        (with_step(PAIRS, 0, 0, 0, cnt=2), "messages"),
        (with_step(PAIRS, 2, 3, 5, hasdep=0), "dependencies"),
        (change(PAIRS, 1, 0, list(PAIRS.gpus[1].threadblocks[0].steps)[::-1]), "deadlock|dependencies|messages"),
    ],
)
def test_findings_name_place_and_smallest_size(algorithm: Algorithm, check: str) -> None:
    for smallest, first in ((0, 4), (1000, 1000), (1001, 1004)):
        found = failures(verify_text(write(attrs.evolve(algorithm, min_bytes=smallest)), runtime="executor"))
        mine = [text for name, text in found.items() if re.search(check, name)]
        assert mine, found
        assert re.search(r"rank \d, threadblock \d, step \d", mine[0])
        assert mine[0].endswith(f"; in calls of {first} bytes and more")


# ---- connections


@pytest.mark.parametrize(
    ("peers", "message"),
    [
        ((1, -1), "rank 0, threadblock 1 sends to rank 1, but no threadblock there receives from rank 0 on channel 1"),
        ((-1, 1), "rank 0, threadblock 1 receives from rank 1, but no threadblock there sends to rank 0 on channel 1"),
    ],
)
def test_a_connection_has_two_ends(peers: tuple[int, int], message: str) -> None:
    """Ranks set up connections in pairs before any step: one that only one of them names hangs, used or not."""
    ranks = [[(1 - r, 1 - r, 0, [f"cpy i{r} o{r} 1", f"s i{1 - r} o0 1", f"r i0 o{1 - r} 1"])] for r in range(2)]
    both = [[*blocks, (1 - r, 1 - r, 1, [])] for r, blocks in enumerate(ranks)]
    assert verify_text(xml("alltoall", 2, both, (2, 2, 0), nchannels=2)).ok
    ranks[0].append((*peers, 1, []))
    text = xml("alltoall", 2, ranks, (2, 2, 0), nchannels=2)
    found = failures(verify_text(text))
    assert list(found) == ["connections"]
    assert found["connections"].startswith(f"{message}: the ranks hang when they connect")
    assert "only one rank sets up" in judge(text, "executor", 1)


# ---- residency, limits


def test_threadblocks_that_do_not_fit() -> None:
    """A rank of more threadblocks than multiprocessors may hang; no number given, it is said how many it needs."""
    text = write(PAIRS)
    report = verify_text(text)
    assert report.ok
    assert detail(report, "residency") == "4 threadblocks of a rank run at once: a GPU needs 4 multiprocessors"
    assert verify_text(text, multiprocessors=4).ok
    found = failures(verify_text(text, multiprocessors=3))
    assert list(found) == ["residency"]
    assert found["residency"].startswith("rank 0 has 4 threadblocks, but 3 run at once: threadblock 3 has no place")
    assert "rank 2 has 4" in found["residency"] and "and 1 more" in found["residency"]
    with pytest.raises(CollcError, match="at least 1 multiprocessor") as failure:
        verify_text(text, multiprocessors=0)
    assert failure.value.exit_status == 2


def test_a_launch_counts_its_tiles() -> None:
    """16 KiB a tile, 65536 tiles a launch: RCCL's LL ends at 1 GiB a chunk."""
    one = [[(-1, -1, 0, ["cpy i0 o0 1"])]]
    for size, good in ((1 << 30, True), ((1 << 30) + 1, False), (0, True)):
        report = verify_text(xml("allreduce", 1, one, (1, 1, 0), proto="LL", maxBytes=size), runtime="rccl")
        assert report.ok == good
        if not good:
            assert f"maxBytes {size} is too large: a launch has at most 65536 tiles" in failures(report)["runtime rccl"]


def test_a_name_that_stands_for_something_built_in() -> None:
    """C0635: microsoft/msccl never executes the steps of an alltoall that is named 2D."""
    text = exchange(1, name="2D", maxBytes=1 << 20)
    assert 'name="2D" makes microsoft/msccl run' in failures(verify_text(text, runtime="msccl"))["runtime msccl"]
    assert verify_text(text, runtime="executor").ok
    assert verify_text(exchange(1, name="2d", maxBytes=1 << 20), runtime="msccl").ok
    with pytest.raises(CollcError) as failure:
        MscclXml(runtime="msccl", algorithm="2D").emit(programs.alltoall(3))
    assert [d.code for d in failure.value.diagnostics] == ["C0635"]


# ---- in place and out of place


def test_both_flags_stand_only_where_both_uses_are_right() -> None:
    """Brute force agrees with every flag that is written, and with every one that is not."""
    for program in (
        programs.ring_allreduce(3), programs.ring_allgather(3), programs.alltoall(3), programs.alltoall(3, apart=True),
        programs.ring_reduce_scatter(3), programs.allpairs_allreduce(3),
    ):  # fmt: skip
        (artifact,) = MscclXml().emit(program)
        for flag, mode in (("inplace", True), ("outofplace", False)):
            claimed = f' {flag}="1"' in artifact.text
            file = load(artifact.text)

            def right(seed: int, file: object = file, mode: bool = mode) -> bool:
                try:
                    run(file, inplace=mode, split=1 + seed % 2, seed=seed)  # type: ignore[arg-type]
                except Wrong:
                    return False
                return True

            assert all(right(seed) for seed in range(30)) == claimed, (program.name, flag)


# ---- the judge is no rubber stamp


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (write(with_step(PAIRS, 0, 0, 2, depid=-1, deps=-1)), "wrong numbers"),
        (write(with_step(PAIRS, 0, 0, 0, srcoff=3)), "wrong numbers"),
        (write(with_step(PAIRS, 0, 0, 3, dstoff=4)), "leaves buffer o"),
        (write(with_step(PAIRS, 2, 3, 5, hasdep=0)), "hang"),
        (exchange(4), "hang"),
        (exchange(2), ""),
        (write(PAIRS), ""),
        (xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1", "cpy o0 i0 1", "cpy i0 i0 1"])]], (1, 1, 0)), ""),
        (xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1", "re o0 i0 1"])]], (1, 1, 0)), "overwrites its input"),
    ],
)
def test_the_judge_sees_what_goes_wrong(text: str, problem: str) -> None:
    found = judge(text, "executor", 30)
    assert problem in found and bool(problem) == bool(found)
