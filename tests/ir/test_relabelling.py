"""Programs with other numbers of ranks: right for every symmetry, and wrong where a fault is planted."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest
from sampling import every

import collc
from collc.driver.result import Settings
from collc.ir import relabelling
from collc.ir.collective import Collective
from collc.ir.one_sided import relabelling as one_sided
from collc.ir.one_sided.program import OneSided
from collc.ir.program import Program
from collc.ir.text import print_ir
from collc.ir.validate import structure
from collc.ir.verify import verify
from collc.registry.elements import parse_elements

KINDS = ("allgather", "reduce-scatter", "allreduce", "alltoall", "broadcast { root: 2 }", "gather { root: 1 }",
         "scatter { root: 0 }")  # fmt: skip


def relabelled(ir: Any, collective: Collective, number: Any) -> Any:
    """Return a program of either kind with other numbers of ranks."""
    module = one_sided if isinstance(ir, OneSided) else relabelling
    return module.relabelled(ir, collective, number)


def last_of(kind: str, target: str, net: str = "complete(5)") -> Any:
    """Return the last IR of a compilation for a target."""
    from collc.driver.compilation import compiled, make_jobs
    from collc.reading.coll import load_spec
    from collc.reading.loading import Loading

    name, brace, options = kind.partition(" {")
    text = f"topology n = {net}; collective c = {name} on n{brace}{options}; schedule c using auto;"
    (job,) = make_jobs(load_spec(text, "x.coll", Loading()), parse_elements(target, "-t"))[0]
    ((_, ir),) = compiled(job, Settings(keeps_last=True)).last
    return ir


@pytest.mark.parametrize("target", ["ir", "mscclpp-json", "mscclpp-json{inplace}"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_permutations_of_a_complete_network_keep_a_program_right(kind: str, target: str) -> None:
    try:
        ir = last_of(kind, target)
    except collc.CollcError:
        pytest.skip("the target does not run it")
    for seed in every(2, range(20)):
        number = np.array(random.Random(seed).sample(range(5), 5))
        root = ir.collective.root
        collective = attrs.evolve(ir.collective, root=None if root is None else int(number[root]))
        found = relabelled(ir, collective, number)
        if found is None:
            continue  # an instruction for several shards
        assert not structure(found) and verify(found).ok
        back = relabelled(found, ir.collective, np.argsort(number))
        assert back is not None and print_ir(back) == print_ir(ir)


def test_shards_that_an_instruction_moves_together_stay_neighbours() -> None:
    ir = last_of("allgather", "ir", "uniring(4)")
    assert isinstance(ir, Program)
    joined = attrs.evolve(ir, chunks=1, count=np.where(ir.reads_src, 2, ir.count))
    turned = np.array([1, 2, 3, 0])
    assert relabelled(ir, ir.collective, turned) is not None
    assert relabelled(joined, ir.collective, np.array([2, 0, 3, 1])) is None


def test_a_program_with_only_its_blocks_moved_is_caught() -> None:
    ir = last_of("allgather", "ir", "uniring(4)")
    assert isinstance(ir, Program)
    found = relabelled(ir, ir.collective, np.array([2, 0, 3, 1]))
    assert found is not None and verify(found).ok
    assert not verify(attrs.evolve(found, send_peer=ir.send_peer)).ok
    assert not verify(attrs.evolve(found, dst_offset=ir.dst_offset)).ok


def test_an_order_of_ranks_does_not_move() -> None:
    ir = last_of("allreduce", "ir", "complete(3)")
    assert isinstance(ir, Program)
    ordered = attrs.evolve(ir, collective=attrs.evolve(ir.collective, op="ordered"))
    assert relabelled(ordered, ordered.collective, np.array([1, 0, 2])) is None
