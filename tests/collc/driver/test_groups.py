"""Compiling collectives of members, and several at once: files of participants, relays, blocks."""

from __future__ import annotations

import json
from fractions import Fraction

import attrs
import pytest

import collc
from collc.cli.together import whole_object, whole_text
from collc.driver.blocks import Block
from collc.driver.checking import mistakes
from collc.driver.compilation import make_jobs, run_jobs
from collc.driver.compile import compile_collective
from collc.driver.result import CollectiveResult, Settings
from collc.driver.whole import on_its_part, wholes
from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import CollectiveRequest, Option, Problem, ScheduleRequest, Spec
from collc.ir.topology import Topology
from collc.passes.synthesis.groups.relays import relays_of
from collc.registry.classes import target_class

MIB = 1 << 20


def request(
    topology: Topology, kind: str, members: tuple[int, ...], scheduler: str = "forest", name: str = "c",
    size: int = MIB, **options: str,
) -> CollectiveRequest:  # fmt: skip
    given = tuple(Option(option, value) for option, value in options.items())
    problem = Problem(topology, Collective(kind, topology.num_ranks, members=members, size=size))
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
    assert "in this order: 0, 1, 8, 9." in texts["mpi-c"]
    assert 'ngpus="4"' in texts["msccl-xml"]
    assert "(ranks 0, 1, 8, 9 of the network)" in texts["msccl-xml"]
    assert "(ranks 0, 1, 8, 9 of the network)" in texts["oneccl-xml"]
    assert "members 0 1 8 9" in texts["ir"]
    assert found.program is not None and found.program.num_ranks == 16
    assert found.schedule is not None and relays_of(found.schedule) == ()  # mpi-c has none


def test_relays_are_an_option_of_the_schedule() -> None:
    far = compiled(request(BOXES, "allgather", (0, 8)))
    never = compiled(request(BOXES, "allgather", (0, 8), relays="never"))
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
    (whole,) = wholes(jobs, results)
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
    assert list(wholes(jobs, [result])) == []
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


@pytest.mark.parametrize("target", ["mpi-c", "oneccl-xml", "msccl-xml{runtime=msccl}"])
@pytest.mark.parametrize("kind", ["allgather", "alltoall", "broadcast { root: 4 }", "gather { root: 0 }"])
def test_ranks_that_relay_take_part_in_a_custom_collective(target: str, kind: str) -> None:
    """The members of a torus's diagonal are no neighbours: their data pass other ranks, which call too."""
    name, _, options = kind.partition(" ")
    text = f"topology t = torus(3, 3); collective c = {name} on t among {{0, 4, 8}} {options or ';'}"
    result = collc.compile_source(text, target=target)
    (artifact,) = [file for path, file in result.artifacts.items() if path.startswith("c")][:1]
    assert "relays" in artifact.text


@pytest.mark.parametrize("target", ["mpi-c", "oneccl-xml", "msccl-xml"])
def test_ranks_that_relay_sums_are_refused(target: str) -> None:
    text = "topology t = torus(3, 3); collective c = allreduce on t among {0, 4, 8};"
    with pytest.raises(CollcError, match="only relay") as caught:
        collc.compile_source(text, target=target)
    assert caught.value.diagnostics[0].code == "C0062"
