"""Tables of NCCL's tuners: what two tuners choose of them, at every border, and what no table may say."""

from __future__ import annotations

import random
from itertools import pairwise

import attrs
import planted_files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import EXHAUSTIVE, examples

from collc.backends.base import Artifact
from collc.backends.nccl_tuner import NcclTuner
from collc.backends.nccl_tuner.dialects import read_table
from collc.backends.nccl_tuner.names import ALGORITHMS, COLLECTIVES, PROTOCOLS, require_pair, require_row
from collc.backends.nccl_tuner.plugins import Call, Choice, ExamplePlugin, NcclxTuner
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.tuning import LARGEST, TunedRange, Tuning

TRY = settings(max_examples=examples(80), deadline=None)
PAIRS = [("ring", "simple"), ("tree", "ll128"), ("ring", "ll"), ("nvls", "simple"), ("tree", "simple")]


def tuning(borders: list[int], kind: str = "allreduce", nodes: int = 2, each: int = 8, name: str = "c") -> Tuning:
    """Return a choice that changes at these sizes."""
    ends = [0, *borders, LARGEST + 1]
    pairs = [(a, p) for a, p in PAIRS if kind in ALGORITHMS[a]]
    ranges = [TunedRange(a, b - 1, *pairs[k % len(pairs)]) for k, (a, b) in enumerate(pairwise(ends))]
    return Tuning(name, Collective(kind, nodes * each), nodes, tuple(ranges), ("by hand",))


@st.composite
def tunings(draw: st.DrawFn) -> Tuning:
    borders = sorted(draw(st.sets(st.integers(1, 4096) | st.integers(1, LARGEST), max_size=6)))
    kind = draw(st.sampled_from(["allreduce", "allgather", "reduce-scatter"]))
    return tuning(borders, kind, draw(st.integers(1, 5)), draw(st.integers(1, 9)))


def table(target: NcclTuner, *given: Tuning) -> str:
    return target.emit(given[0])[0].text if len(given) == 1 else target.join([target.emit(g)[0] for g in given])[0].text


# ---- what tuners choose


@TRY
@given(tunings(), st.integers(0, 64), st.lists(st.integers(0, LARGEST), max_size=20))
def test_the_example_plugin_chooses_what_the_table_was_written_from(
    given_: Tuning, channels: int, sizes: list[int]
) -> None:
    target = NcclTuner(channels=channels)
    assert target.check(given_, target.emit(given_)).ok
    plugin = ExamplePlugin(table(target, given_))
    near = [border + k for border in given_.borders for k in (-1, 0, 1)]
    for size in (*near, *sizes, 0, LARGEST):
        due = given_.at(min(size, LARGEST))
        name = COLLECTIVES[given_.collective.kind]
        call = Call(name, size, given_.nodes, given_.collective.num_ranks)
        if size <= LARGEST:
            assert plugin.choose(call) == Choice(due.algorithm, due.protocol, channels)
        assert plugin.choose(call._replace(collective="broadcast")) is None
        assert plugin.choose(call._replace(ranks=call.ranks + 1)) is None


@TRY
@given(tunings(), st.lists(st.integers(0, 2**40), max_size=20))
def test_the_tuner_in_ncclx_chooses_the_same_at_multiples_of_the_ranks(given_: Tuning, shards: list[int]) -> None:
    target = NcclTuner(dialect="ncclx")
    report = target.check(given_, target.emit(given_))
    assert report.ok, report.failed
    tuner, ranks = NcclxTuner(table(target, given_)), given_.collective.num_ranks
    near = [border // ranks + k for border in given_.borders for k in (-1, 0, 1)]
    for shard in (*shards, *near):
        if 0 <= shard * ranks <= LARGEST:
            due = given_.at(shard * ranks)
            call = Call(COLLECTIVES[given_.collective.kind], shard * ranks, given_.nodes, ranks)
            assert tuner.choose(call) == Choice(due.algorithm, due.protocol, 0)


def test_what_is_written() -> None:
    lines = table(NcclTuner(channels=8), tuning([4096])).splitlines()
    assert lines[-2:] == [
        "allreduce,0,4095,ring,simple,8,2,16,-1,-1", f"allreduce,4096,{LARGEST},tree,ll128,8,2,16,-1,-1",
    ]  # fmt: skip
    lines = table(NcclTuner(dialect="ncclx"), tuning([4100])).splitlines()
    assert lines[-2:] == ["allreduce,[0,256],ring,simple,-1,2,8", "allreduce,[257,),tree,ll128,-1,2,8"]


def test_one_table_for_several_collectives() -> None:
    target, given_ = NcclTuner(table="pod"), [tuning([64]), tuning([128], "allgather"), tuning([256], nodes=4)]
    mains = [target.emit(one)[0] for one in given_]
    (joined,) = target.join(mains)
    assert (joined.filename, target.check_joined(mains, [joined]).ok) == ("pod.csv", True)
    assert not target.check_joined(mains, [attrs.evolve(joined, text=joined.text.replace(",255,", ",254,"))]).ok
    with pytest.raises(CollcError, match="two tables are for allreduce"):
        target.join([mains[0], mains[0]])


# ---- what parsers do


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("allreduce,0,99,tree,simple,4,2,16", Choice("tree", "simple", 4)),
        (" allreduce ,0, 99 , tree\t,simple,4,2,16", Choice("tree", "simple", 4)),
        ("allreduce,0,99,trees,simpel,4,2,16", Choice("ring", "simple", 4)),  # unknown names are defaults
        ("allredce,0,99,tree,ll,4,2,16", Choice("tree", "ll", 4)),  # and an unknown collective is allreduce
        ("allreduce,0,99,tree,simple,-1,2,16", Choice("tree", "simple", 1)),  # -1 leaves one channel
        ("allreduce,0,99,tree,simple,0,2,16", Choice("tree", "simple", 0)),
        ("allreduce,0,99,,tree,simple,4,2,16", Choice("tree", "simple", 4)),  # an empty field is none
        ("allreduce,0,99,tree,simple,,2,16,-1", None),  # and shifts those after it
        ("#allreduce,0,99,tree,simple,4,2,16", None),
        (" #llreduce,0,99,tree,simple,4,2,16", Choice("tree", "simple", 4)),  # a comment in column 0 alone
        ("allreduce,0,99,tree,simple,4,2", None),
        ("allreduce,0,99,tree,simple,4,-1,-1,-1,-1,more,fields", Choice("tree", "simple", 4)),
        ("allreduce,51,99,tree,simple,4,2,16", None),
        ("allreduce,0,-1,tree,simple,4,2,16", Choice("tree", "simple", 4)),  # strtoull wraps
        ("allreduce,0,99,tree,simple,4,2,16,7", None),
    ],
)
def test_the_example_plugin_reads_as_its_source_does(line: str, due: Choice | None) -> None:
    assert ExamplePlugin(f"{line}\n").choose(Call("allreduce", 50, 2, 16)) == due


def test_the_first_row_wins_and_long_lines_are_cut() -> None:
    rows = "allreduce,0,99,tree,simple,4,2,16\nallreduce,0,99,ring,ll,8,2,16\n"
    assert ExamplePlugin(rows).choose(Call("allreduce", 50, 2, 16)) == Choice("tree", "simple", 4)
    padded = "allreduce,0,99,tree,simple,4,2," + " " * 250 + "16\n"
    assert ExamplePlugin(padded).choose(Call("allreduce", 50, 2, 16)) is None


@pytest.mark.parametrize(
    ("interval", "holds"),
    [
        ("*", {0, 3, 4, 9}), ("4", {4}), ("[0,4)", {0, 3}), ("(0,4]", {3, 4}), ("[4,)", {4, 9}), ("(4,)", {9}),
        ("(,4]", {0, 3, 4}), ("(,4)", {0, 3}),
    ],
)  # fmt: skip
def test_intervals_of_ncclx(interval: str, holds: set[int]) -> None:
    tuner = NcclxTuner(f"allreduce,{interval},ring,simple,-1,*,*")
    assert {k for k in (0, 3, 4, 9) if tuner.choose(Call("allreduce", 16 * k, 2, 16))} == holds


@pytest.mark.parametrize(
    "row",
    [
        "allreduce,[4,0],ring,simple,-1,2,8", "allreduce,4..5,ring,simple,-1,2,8", "allredce,*,ring,simple,-1,2,8",
        "allreduce,*,rings,simple,-1,2,8", "allreduce,*,ring,simple,x,2,8", "allreduce,*,ring,simple",
    ],
)  # fmt: skip
def test_ncclx_refuses_what_it_does_not_know(row: str) -> None:
    with pytest.raises(ValueError, match="found"):
        read_table(row, "ncclx")


# ---- planted faults


@pytest.mark.parametrize("dialect", ["example", "ncclx"])
def test_planted_faults_are_found(dialect: str) -> None:
    target = NcclTuner(dialect=dialect)  # type: ignore[arg-type]
    given_, luck = tuning([160, 4096, 65536]), random.Random(3)
    (file,) = target.emit(given_)
    tried = 0
    for plant in planted_files.PLANTINGS.values():
        for _ in range(200 if EXHAUSTIVE else 20):
            text, place = plant(file.text, luck)
            if place >= 0 and text != file.text:
                tried += 1
                assert not target.check(given_, [attrs.evolve(file, text=text)]).ok
    assert tried > 50


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        (",4095,", ",4094,", "same choice"), ("4096,", "4097,", "same choice"), ("ll128", "ll", "same choice"),
        ("ring,simple", "tree,simple", "same choice"), (",0,2,16,", ",4,2,16,", "same choice"),
        (",0,2,16,", ",-1,2,16,", "same choice"),
        (",2,16,", ",-1,-1,", "no other communicator"), ("ring,simple", ",ring,simple", "lines"),
        ("ring,simple", "ring,simple" + " " * 240, "lines"), ("allreduce,0", "allgather,0", "same choice"),
    ],
)  # fmt: skip
def test_faults_are_found_without_comparing_bytes(old: str, new: str, check: str) -> None:
    target, given_ = NcclTuner(), tuning([4096])
    (file,) = target.emit(given_)
    head, rows = file.text.rsplit("#", 1)
    changed = f"{head}#{rows.replace(old, new)}"
    report = target.check(given_, [attrs.evolve(file, text=changed)])
    assert changed != file.text and check in [one.name for one in report.failed]


# ---- names


def test_names_are_those_of_nccl() -> None:
    for kind in COLLECTIVES:
        for algorithm, kinds in ALGORITHMS.items():
            for protocol in PROTOCOLS:
                allowed = kind in kinds and (protocol == "simple" or algorithm in ("ring", "tree"))
                if allowed:
                    require_pair(kind, algorithm, protocol)
                else:
                    with pytest.raises(CollcError, match="NCCL has no"):
                        require_pair(kind, algorithm, protocol)


@pytest.mark.parametrize(
    ("row", "dialect", "why"),
    [
        ("allreduce,0,9,trees,simple,1,2,16", "example", "no algorithm `trees`"),
        ("allredce,0,9,tree,simple,1,2,16", "example", "no collective `allredce`"),
        ("allreduce,0,9,tree,,1,2,16", "example", "an empty field"),
        ("allreduce,0,9,tree,simple", "example", "found 5 fields"),
        ("allreduce,[0,9],pat,simple,-1,2,8", "ncclx", "no pat for allreduce"),
        ("allreduce,0,9,tree,simple,1,2,16" + " " * 250, "example", "too long"),
    ],
)
def test_rows_of_any_table_are_judged(row: str, dialect: str, why: str) -> None:
    with pytest.raises(CollcError, match=why):
        require_row(row, dialect)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"dialect": "csv"}, "`dialect` is `csv`"), ({"nccl": "2.27"}, "`nccl` is `2.27`, needed a version from 2.28"),
        ({"nccl": "new"}, "`nccl` is `new`"), ({"channels": 65}, "`channels` is `65`, needed 0 to 64"),
        ({"nodes": 0}, "`nodes` is `0`"), ({"table": "a/b"}, "`table` is `a/b`"),
        ({"protocol": "LL"}, "`protocol` is `LL`"),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(CollcError) as refused:
        NcclTuner(**options)  # type: ignore[arg-type]
    first = refused.value.diagnostics[0]
    assert (first.code, why in first.message) == ("C0774", True)


def test_names_that_nccl_does_not_have_are_not_written() -> None:
    wrong = attrs.evolve(tuning([]), ranges=(TunedRange(0, LARGEST, "pat", "simple"),))
    with pytest.raises(CollcError, match="NCCL has no pat for allreduce"):
        NcclTuner().emit(wrong)
    uneven = attrs.evolve(tuning([]), collective=Collective("allreduce", 15))
    with pytest.raises(CollcError, match="15 ranks on 2 machines"):
        NcclTuner(dialect="ncclx").emit(uneven)


def test_collectives_without_a_choice_are_refused() -> None:
    with pytest.raises(CollcError, match="NCCL has one algorithm for broadcast"):
        NcclTuner().require(Collective("broadcast", 8, root=0))


def test_further_files_are_refused() -> None:
    target, given_ = NcclTuner(), tuning([9])
    (file,) = target.emit(given_)
    assert isinstance(file, Artifact) and not target.check(given_, [file, file]).ok
