"""Compiling collectives of members, and several at once: files of participants, relays, blocks."""

from __future__ import annotations

import json
from fractions import Fraction

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import every, examples
from strategies import connected

import collc
from collc.backends.base import Target
from collc.cli.together import whole_object, whole_text
from collc.driver.blocks import Block
from collc.driver.checking import mistakes
from collc.driver.compilation import _target as target_of
from collc.driver.compilation import make_jobs, run_jobs
from collc.driver.compile import compile_collective
from collc.driver.result import CollectiveResult, Settings
from collc.driver.sizes import at_size, is_planned_by_size
from collc.driver.whole import on_its_part, wholes
from collc.ir.collective import ROOTED, Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest, Spec
from collc.ir.topology import Topology
from collc.passes.program.participants import participants
from collc.passes.synthesis.groups.relays import relays_of
from collc.registry.classes import target_class
from collc.registry.elements import Element

pytestmark = pytest.mark.slow

MIB = 1 << 20


def request(
    topology: Topology, kind: str, members: tuple[int, ...], scheduler: str = "forest", name: str = "c",
    size: int = MIB, **options: str,
) -> CollectiveRequest:  # fmt: skip
    given = tuple(Option(option, value) for option, value in options.items())
    root = members[-1] if kind in ROOTED else None
    problem = Problem(topology, Collective(kind, topology.num_ranks, root, members=members, size=size))
    return CollectiveRequest(name, "pod", problem, ScheduleRequest(scheduler, given))


def compiled(one: CollectiveRequest, *targets: str) -> CollectiveResult:
    return compile_collective(one, [target_class(name)() for name in targets], Settings())


BOXES = collc.topology("dgx_a100(2)")
RING = collc.topology("biring(6)")


@pytest.mark.parametrize("scheduler", ["forest", "auto", "bine"])
@pytest.mark.parametrize("kind", ["allgather", "allreduce"])
def test_files_are_for_the_ranks_that_take_part(scheduler: str, kind: str) -> None:
    found = compiled(request(BOXES, kind, (0, 1, 8, 9), scheduler), "mpi-c", "msccl-xml", "oneccl-xml", "ir")
    texts = {file.target: file.text for file in found.artifacts}
    assert "in this order: 0, 1, 8, 9" in texts["mpi-c"]
    assert 'ngpus="4"' in texts["msccl-xml"]
    assert "(ranks 0, 1, 8, 9 of the network)" in texts["msccl-xml"]
    assert "(ranks 0, 1, 8, 9 of the network)" in texts["oneccl-xml"]
    assert "members 0 1 8 9" in texts["ir"]
    assert found.program is not None and found.program.num_ranks == 16
    assert found.schedule is not None and relays_of(found.schedule) == ()  # slower at this size


def test_relays_are_an_option_of_the_schedule() -> None:
    far = compiled(request(BOXES, "allgather", (0, 8), size=64 * MIB))
    never = compiled(request(BOXES, "allgather", (0, 8), size=64 * MIB, relays="never"))
    assert far.schedule is not None and never.schedule is not None
    assert len(relays_of(far.schedule)) == 14
    assert relays_of(never.schedule) == ()
    assert far.remarks == ("forest: 14 ranks that are no members relay",)
    assert far.forest is not None and never.forest is not None
    assert cost(never.forest).time_per_byte == 8 * cost(far.forest).time_per_byte
    assert never.cost.bound.value == cost(far.forest).time_per_byte
    assert (far.cost.members, far.cost.taking_part) == (2, 2)


def test_all_ranks_as_members_are_no_members() -> None:
    some = compiled(request(RING, "allreduce", tuple(range(6)), "auto"), "mpi-c")
    none = request(RING, "allreduce", (0,), "auto")
    plain = attrs.evolve(none, problem=Problem(RING, Collective("allreduce", 6, size=MIB)))
    assert [file.text for file in some.artifacts] == [file.text for file in compiled(plain, "mpi-c").artifacts]


def test_one_member_is_served() -> None:
    found = compiled(request(RING, "allreduce", (3,)), "mpi-c", "ir")
    assert found.cost.time_per_byte == 0
    assert "in this order: 3." in found.artifacts[1].text


def test_auto_schedules_members() -> None:
    for members in ((0, 2, 4), (0, 1)):
        found = compiled(request(RING, "allreduce", members, "auto"), "ir")
        assert found.choice is not None
        assert all(report.ok for report in found.reports)


@pytest.mark.parametrize(
    ("one", "targets", "code"),
    [
        (request(RING, "allgather", (0, 2, 4)), ("msccl-xml",), "C0062"),
        (request(RING, "allgather", (0, 2, 4), relays="often"), (), "C0010"),
        (request(RING, "allgather", (0, 2, 4), relays="never"), (), "C0301"),
        (request(RING, "allgather", (0, 2, 4), "bfb"), (), "C0567"),
        (request(RING, "allgather", (0, 1, 2, 3, 4, 5), k="no"), (), "C0010"),
    ],
)
def test_what_cannot_be_is_refused(one: CollectiveRequest, targets: tuple[str, ...], code: str) -> None:
    with pytest.raises(CollcError) as caught:
        compiled(one, *targets)
    assert caught.value.diagnostics[0].code == code


def spec_of(requests: list[CollectiveRequest], together: bool = True) -> Spec:
    names = tuple(one.name for one in requests)
    return Spec({"pod": requests[0].problem.topology}, {one.name: one for one in requests},
                together=(names,) if together else ())  # fmt: skip


def hybrid(boxes: int = 2, scheduler: str = "forest") -> Spec:
    topology = collc.topology(f"dgx_h100({boxes})")
    groups = {f"tp[{b}]": tuple(range(8 * b, 8 * b + 8)) for b in range(boxes)}
    groups |= {f"dp[{g}]": tuple(range(g, 8 * boxes, 8)) for g in range(8)}
    return spec_of([request(topology, "allreduce", m, scheduler, name, 64 * MIB) for name, m in groups.items()])


def test_a_block_divides_the_links() -> None:
    jobs, _ = make_jobs(hybrid())
    results = run_jobs(jobs, Settings(until=Schedule))
    (whole,) = wholes([job.block for job in jobs], results)
    assert whole.ratio == 1
    assert whole.time == Fraction(64 * MIB, 50 * 10**9)
    text = whole_text(whole)
    assert "10 collectives (tp[0], tp[1], dp[0], dp[1], ..)" in text and "met: no schedules are faster" in text
    found = json.loads(json.dumps(whole_object(whole)))
    assert Fraction(found["certificate"]["carried"]) / Fraction(found["certificate"]["paid"]) == whole.bound.value
    assert [part["name"] for part in found["parts"]] == list(whole.names)


def test_one_of_a_block_keeps_its_part() -> None:
    jobs, _ = make_jobs(hybrid(), only=["dp[0]"])
    (result,) = run_jobs(jobs, Settings(until=Schedule))
    assert list(wholes([job.block for job in jobs], [result])) == []
    assert result.request.problem.shares is not None
    (alone,) = run_jobs([attrs.evolve(jobs[0], block=None)], Settings(until=Schedule))
    assert alone.schedule is not None and result.schedule is not None
    assert relays_of(alone.schedule) != () and relays_of(result.schedule) == ()


def test_a_schedule_on_its_part_takes_the_time_of_its_part() -> None:
    jobs, _ = make_jobs(hybrid())
    results = run_jobs(jobs, Settings(until=Schedule))
    for job, result in zip(jobs, results, strict=True):
        level, shares = result.schedule, result.request.problem.shares
        assert isinstance(level, Schedule | Forest)
        part = on_its_part(level, shares)
        assert on_its_part(level, None) is level
        assert job.block is not None
        time = job.block.found.times[[one.name for one in job.block.requests].index(result.name)]
        assert time is not None
        assert cost(part).time_per_byte * 64 * MIB <= time


def test_auto_and_files_in_a_block() -> None:
    jobs, _ = make_jobs(hybrid(scheduler="auto"), only=["tp[1]", "dp[7]"])
    target = target_class("mpi-c")()
    for result in run_jobs([attrs.evolve(job, targets=(target,)) for job in jobs], Settings()):
        assert result.artifacts


def test_a_block_has_one_network() -> None:
    spec = spec_of([request(RING, "allgather", (0, 1)), request(BOXES, "allgather", (0, 1), name="d")])
    jobs, _ = make_jobs(spec)
    with pytest.raises(CollcError) as caught:
        run_jobs(jobs, Settings(until=Schedule))
    assert {d.code for d in caught.value.diagnostics} == {"C0063"}


def test_a_block_of_one_is_none() -> None:
    jobs, _ = make_jobs(spec_of([request(RING, "allgather", (0, 1, 2))]))
    assert jobs[0].block is None
    assert mistakes(spec_of([request(RING, "allgather", (0, 1, 2))]), "pod") is None


def test_blocks_are_found_once() -> None:
    jobs, _ = make_jobs(hybrid())
    assert isinstance(jobs[0].block, Block)
    assert len({id(job.block) for job in jobs}) == 1


# ---- targets without ranks that only relay


def targets(*texts: str) -> list[Target]:
    return [target_of(Element(name, tuple(Option(*pair) for pair in options))) for name, options in map(parsed, texts)]


def parsed(text: str) -> tuple[str, list[tuple[str, str | bool]]]:
    """Return a target's name and options from `name{option=value}`."""
    name, _, inside = text.partition("{")
    option, _, value = inside.rstrip("}").partition("=")
    return name, [(option, True if value == "true" else value)] if option else []


def far(kind: str, size: int = 64 * MIB, scheduler: str = "forest") -> CollectiveRequest:
    """Return a request of two GPUs in two boxes, whose neighbors would relay a large vector."""
    return request(BOXES, kind, (0, 8), scheduler, size=size)


@pytest.mark.parametrize(
    ("target", "kind", "relays", "scheduler"),
    every(2, [(*one, ("forest", "auto")[(k + turn) % 2]) for k, one in enumerate([
        ("mpi-c", "allgather", True), ("mpi-c", "allreduce", True), ("mpi-c{interpose=true}", "allreduce", False),
        ("msccl-xml", "allgather", False), ("msccl-xml", "allreduce", False), ("oneccl-xml", "allgather", True),
        ("oneccl-xml", "allreduce", True), ("msccl-xml{runtime=msccl}", "broadcast", True),
        ("msccl-xml{runtime=msccl}", "reduce-scatter", True), ("ir", "allreduce", True),
    ]) for turn in (0, 1)]),
)  # fmt: skip
def test_files_have_relays_if_they_may_and_gain(target: str, kind: str, relays: bool, scheduler: str) -> None:
    one = far(kind, scheduler=scheduler)
    found = compile_collective(one, targets(target), Settings())
    assert found.schedule is not None and (relays_of(found.schedule) != ()) == relays
    (text,) = [text for text in found.remarks if "relays out" in text] or [""]
    assert (text != "") == (not relays)
    best = compile_collective(one, (), Settings(until=Schedule))
    if relays:
        assert found.cost.time(64 * MIB) == best.cost.time(64 * MIB)
    else:
        rates = [f"{64 * MIB / float(each.cost.time(64 * MIB)) / 1e9:.4g} GB/s" for each in (found, best)]
        assert f": {rates[0]} at 64 MiB, with relays {rates[1]} " in text
    shown = compile_collective(one, (), Settings(until=Schedule), shown=targets(target))
    assert shown.cost.time(64 * MIB) == found.cost.time(64 * MIB)
    assert [text for text in shown.remarks if "relays out" in text] == [text][: not relays]
    small = compile_collective(attrs.evolve(one, problem=one.problem.sized(1024)), targets(target), Settings())
    assert small.schedule is not None and relays_of(small.schedule) == () and "relays out" not in str(small.remarks)


@pytest.mark.parametrize("order", [("mpi-c", "msccl-xml"), ("msccl-xml", "mpi-c")])
def test_each_target_has_its_own_schedule(order: tuple[str, str]) -> None:
    found = compile_collective(far("allreduce"), targets(*order), Settings())
    apart = {name: compile_collective(far("allreduce"), targets(name), Settings()) for name in order}
    assert [target.name for target, _ in found.emitted] == list(order)
    for target, files in found.emitted:
        assert [file.text for file in files] == [file.text for file in apart[target.name].artifacts]
    assert found.cost == apart[order[0]].cost
    assert len([text for text in found.remarks if text.startswith("msccl-xml leaves relays out")]) == 1


def test_a_custom_file_that_does_not_fit_is_one_without_relays() -> None:
    found = compile_collective(far("allgather"), targets("msccl-xml{runtime=msccl}"), Settings())
    assert 'coll="custom"' in found.artifacts[0].text
    (target,) = targets("msccl-xml{runtime=msccl}")
    narrow = attrs.evolve(target, threadblocks=3)  # type: ignore[call-arg]  # it has this field
    (both, alone) = (
        compile_collective(far("allgather"), chosen, Settings()) for chosen in ([*targets("mpi-c"), narrow], [narrow])
    )
    assert 'coll="allgather"' in alone.artifacts[0].text and 'coll="allgather"' in both.artifacts[2].text
    assert "only relay" in both.artifacts[1].text
    assert any("msccl-xml leaves relays out" in text for text in alone.remarks)


def test_relative_bandwidths_are_compared_by_their_ratio() -> None:
    ring = collc.topology("torus(3, 3)")
    found = compile_collective(request(ring, "allreduce", (0, 1), size=64 * MIB), targets("msccl-xml"), Settings())
    (text,) = [text for text in found.remarks if "relays out" in text]
    assert "times as long as with relays at 64 MiB" in text


def test_blocks_leave_relays_out_for_targets_without() -> None:
    spec = hybrid()
    jobs, _ = make_jobs(spec, [Element("msccl-xml")])
    results = run_jobs([job for job in jobs if job.request.name in ("tp[0]", "dp[3]")], Settings())
    assert all(result.artifacts for result in results)
    for result in results:
        assert result.schedule is not None and relays_of(result.schedule) == ()


@pytest.mark.parametrize("target", ["mpi-c", "oneccl-xml", "msccl-xml{runtime=msccl}"])
@pytest.mark.parametrize("kind", ["allgather", "alltoall", "broadcast { root: 4 }", "gather { root: 0 }"])
def test_ranks_that_relay_take_part_in_a_custom_collective(target: str, kind: str) -> None:
    """The members of a torus's diagonal are no neighbours: their data pass other ranks, which call too."""
    name, _, options = kind.partition(" ")
    text = f"topology t = torus(3, 3); collective c = {name} on t among {{0, 4, 8}} {options or ';'}"
    result = collc.compile_source(text, target=target)
    (artifact,) = [file for path, file in result.artifacts.items() if path.startswith("c")][:1]
    assert "relays" in artifact.text


@pytest.mark.parametrize("target", ["mpi-c{interpose=true}", "msccl-xml", "msccl-xml{runtime=rccl}"])
def test_ranks_that_relay_sums_are_refused(target: str) -> None:
    text = "topology t = torus(3, 3); collective c = allreduce on t among {0, 4, 8};"
    with pytest.raises(CollcError, match="only relay") as caught:
        collc.compile_source(text, target=target)
    assert caught.value.diagnostics[0].code == "C0062"


# ---- relays by size

PAIR = ("allgather", "allreduce")


@settings(max_examples=examples(24), deadline=None)
@given(
    connected(3), st.sampled_from(["forest", "auto", "swing"]), st.sampled_from(["allgather", "allreduce"]), st.data()
)
def test_relays_are_never_slower(topology: Topology, scheduler: str, kind: str, data: st.DataObject) -> None:
    members = tuple(sorted(data.draw(st.sets(st.integers(0, topology.num_ranks - 1), min_size=2))))
    size = data.draw(st.sampled_from([64, 1 << 20, 1 << 30]))
    one = request(topology, kind, members, scheduler, size=size)
    settings = Settings(until=Schedule)
    try:
        never = compile_collective(attrs.evolve(one, problem=attrs.evolve(one.problem, relays="never")), (), settings)
        auto = compile_collective(one, (), settings)
    except CollcError:
        return
    assert auto.cost.time(size) <= never.cost.time(size)
    if auto.choice is None or len(members) == topology.num_ranks:
        return
    assert auto.choice.intervals[0].best.times.at(size) == auto.cost.time(size)
    try:
        trees = compile_collective(attrs.evolve(one, schedule=ScheduleRequest("forest")), (), settings)
    except CollcError:  # it takes balanced networks only
        return
    assert auto.cost.time(size) <= trees.cost.time(size)


@pytest.mark.parametrize("scheduler", ["forest", "auto", "swing"])
def test_other_sizes_are_planned_as_compilations_are(scheduler: str) -> None:
    base = compile_collective(far("allreduce", 1 << 20, scheduler), (), Settings(until=Schedule, remembers=True))
    assert is_planned_by_size(base)
    for size in (1024, 64 * MIB, 1 << 32):
        there = at_size(base, size)
        fresh = compile_collective(far("allreduce", size, scheduler), (), Settings(until=Schedule))
        assert there.cost.time(size) == fresh.cost.time(size)


def test_auto_measures_what_relays_take() -> None:
    """The times of candidates are those of their schedules, hops through relays included."""
    column = request(collc.topology("torus(4, 4)"), "allgather", (0, 4, 8, 12), "auto", size=1 << 30)
    for one in (far("allgather", 1024, "auto"), far("allgather", 64 * MIB, "auto"), column):
        found = compile_collective(one, (), Settings(until=Schedule))
        assert found.choice is not None
        size = one.problem.collective.size
        assert size is not None
        best = found.choice.intervals[0].best
        assert best.times.at(size) == found.cost.time(size)
        assert best.algorithm.apart == (size == 1024)
        assert {one.algorithm.apart for one in found.choice.candidates} == {False, True}


def test_a_range_of_sizes_has_relays_where_they_gain() -> None:
    one = request(BOXES, "allgather", (0, 8), "auto", sizes="1024..268435456")
    found = compile_collective(one, targets("mpi-c"), Settings())
    relaying = [relays_of(each.schedule) != () for each in found.algorithms if each.schedule is not None]
    assert not relaying[0] and relaying[-1]
    assert "communicators of 16 ranks, 14 of which only relay" in found.artifacts[1].text
    assert all(report.ok for report in found.reports)
    custom = compile_collective(one, targets("msccl-xml{runtime=msccl}"), Settings())
    assert {text.count('coll="custom"') for text in (file.text for file in custom.artifacts)} == {0}


@pytest.mark.parametrize("target", ["oneccl-xml", "msccl-xml{runtime=msccl}"])
@pytest.mark.parametrize("kind", ["allgather", "gather", "alltoall"])
def test_files_of_uneven_shards_are_for_the_ranks_that_take_part(target: str, kind: str) -> None:
    """These become custom collectives of equal shards, which have no members."""
    for members, ranks in (((1, 3), 2), ((0, 8), None)):
        plain = request(BOXES, kind, members, "auto").problem.collective
        collective = attrs.evolve(plain, weights=tuple(range(1, plain.num_shards + 1)), size=64 * MIB)
        one = CollectiveRequest("c", "pod", Problem(BOXES, collective), ScheduleRequest("auto"))
        found = compile_collective(one, targets(target), Settings())
        assert all(report.ok for report in found.reports)
        assert found.made is not None
        taking_part = participants(found.made, members)
        assert taking_part[:2] == members and set(taking_part) == {*members, *found.made.block_rank.tolist()}
        assert f'="{len(taking_part)}"' in found.artifacts[0].text
        assert ranks is None or len(taking_part) == ranks
