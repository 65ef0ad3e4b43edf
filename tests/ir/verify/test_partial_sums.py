"""Custom collectives that reduce: each shard sums the contributions of some ranks, for some ranks."""

from __future__ import annotations

from functools import reduce
from random import Random

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partial_sums import RANKS, reductions, scheduled

import collc
from collc.backends.interpreter import reference, run
from collc.frontends import coll
from collc.ir.collective import Collective, preconditions
from collc.ir.diagnostic import CollcError
from collc.ir.schedule import Schedule
from collc.ir.text import parse_ir, print_ir
from collc.ir.verify import verify, verify_program, verify_schedule
from collc.passes.lowering.lower import Lower


@given(reductions(), st.randoms(use_true_random=False))
def test_sums_along_chains_are_right_and_run(collective: Collective, luck: Random) -> None:
    schedule = scheduled(collective, luck)
    assert verify_schedule(schedule).ok
    program = Lower().run(schedule)
    assert verify_program(program).ok
    count = 3
    inputs = [
        np.arange(count * len(collective.shards_at(rank, output=False)), dtype=np.int64) + 100 * 7**rank
        for rank in range(RANKS)
    ]
    outputs = run(program, inputs)
    assert all(map(np.array_equal, outputs, reference(collective, inputs)))
    for rank, found in enumerate(outputs):
        for slot, shard in enumerate(collective.shards_at(rank, output=True).tolist()):
            parts = [
                inputs[one][count * int(collective.input_slots(one, shard)) :][:count]
                for one in collective.contributions(shard)
            ]
            assert found[count * slot : count * (slot + 1)].tolist() == reduce(np.add, parts).tolist()


@given(reductions(), st.randoms(use_true_random=False))
def test_every_lost_transfer_shows(collective: Collective, luck: Random) -> None:
    schedule = scheduled(collective, luck)
    needed = [k for k in range(len(schedule)) if (collective.post or ())[int(schedule.shard[k])]]
    for lost in needed:
        assert not verify_schedule(schedule.rows(np.arange(len(schedule)) != lost)).ok


@given(reductions(), st.randoms(use_true_random=False))
def test_a_contributor_more_shows(collective: Collective, luck: Random) -> None:
    schedule = scheduled(collective, luck)
    sources = [list(collective.contributions(shard)) for shard in range(collective.num_shards)]
    open_ = [k for k, ranks in enumerate(sources) if len(ranks) < RANKS and (collective.post or ())[k]]
    if not open_:
        return
    shard = luck.choice(open_)
    sources[shard] = sorted([*sources[shard], next(rank for rank in range(RANKS) if rank not in sources[shard])])
    pre, contributors = preconditions([tuple(ranks) for ranks in sources])
    other = attrs.evolve(collective, pre=pre, contributors=contributors)
    wrong = attrs.evolve(schedule, collective=other)
    assert not verify_schedule(wrong).ok
    assert not verify_program(Lower().run(wrong)).ok


@given(reductions())
def test_collectives_read_back(collective: Collective) -> None:
    text = print_ir(scheduled(collective, Random(0)))
    read = parse_ir(text)
    assert isinstance(read, Schedule) and read.collective == collective


_ROWS = """topology pod = torus(2, 3);
collective rows { pre: {{r - r mod 3 + i for i in 0..3} for r in 0..ranks} post: 0..ranks }
collective c = rows on pod;
schedule c using steps { for r in 0..6, i in 1..3 { at i: reduce shard r from r - r mod 3 + (r + i) mod 3 to r; } }"""


def test_rows_of_a_torus_sum_their_shards() -> None:
    request = coll.load("<test>", text=_ROWS).collectives["c"]
    collective = request.problem.collective
    assert (collective.name, collective.reduces, collective.num_shards) == ("custom-reduction", True, 6)
    assert collective.contributors == (((0, 1, 2),) * 3 + ((3, 4, 5),) * 3) and collective.holders.tolist() == [-1] * 6
    assert request.schedule.schedule is not None and verify(request.schedule.schedule).ok
    result = collc.compile_source(_ROWS, target=["msccl-xml{runtime=msccl}", "mpi-c"])
    assert result.program is not None and verify_program(result.program).ok


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("mpi-c{interpose=true}", "C0731"),
        ("oneccl-xml", "C0766"),
        ("msccl-xml{runtime=rccl}", "C0607"),
        ("nccl-graph", "C0910"),
    ],
)
def test_targets_that_only_copy_say_so(target: str, code: str) -> None:
    with pytest.raises(CollcError, match=code):
        collc.compile_source(_ROWS, target=target)


@pytest.mark.parametrize("scheduler", ["auto", "general", "exact", "bfb", "forest", "ring"])
def test_schedulers_that_only_copy_say_so(scheduler: str) -> None:
    text = _ROWS[: _ROWS.index("schedule")] + f"schedule c using {scheduler};"
    with pytest.raises(CollcError, match="C0503"):
        collc.compile_source(text, target="msccl-xml{runtime=msccl}")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("pre: {{0, 1}, {}}, post: {2, 3}", "C0216: found a shard that no rank has"),
        ("pre: {{0, 0}}, post: {2}", "C0216: found rank 0 twice for one shard"),
        ("pre: {{0, 9}}, post: {2}", "C0216: found rank 9: ranks are 0 to 3"),
        ("pre: {{0, 1}}, post: {2}, weights: {5}", "C0217: found weights of shards that are summed"),
    ],
)
def test_mistakes_in_conditions(options: str, expected: str) -> None:
    with pytest.raises(CollcError) as caught:
        coll.load("<test>", text=f"collective c = custom on complete(4) {{ {options} }};")
    assert f"{caught.value.diagnostics[0].code}: {caught.value.diagnostics[0].message}" == expected


def test_contributors_fit_the_rest_of_the_collective() -> None:
    for contributors in (((1, 0),), ((0, 4),), ((0,),), ((2, 3),)):
        with pytest.raises(CollcError, match="C0216"):
            Collective("custom", 4, pre=(0,), post=((1,),), contributors=contributors)
