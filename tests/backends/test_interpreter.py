"""The interpreter against the definition of each collective, with numbers of many types and odd lengths."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from built_programs import collective_of, direct, dropped, edited, find, ring
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.backends.interpreter import OPERATIONS, reference, run
from collc.ir.collective import KINDS, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.machine import smallest_depth
from collc.ir.verify import verify_program

RINGS = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
DTYPES = ("int8", "int32", "uint64", "float32", "float64", "complex128")


def numbers(collective, length, dtype="int64", seed=0):
    """Return random inputs: the whole vector, or a rank's blocks of ``length`` elements each."""
    rng = np.random.default_rng(seed)
    blocks = 1 if collective.kind in ("allreduce", "reduce", "broadcast") else collective.input_shards
    takes = [
        (collective.input_slots(r, np.arange(collective.num_shards)) >= 0).any() for r in range(collective.num_ranks)
    ]
    return [rng.integers(0, 100, blocks * length).astype(dtype) if t else None for t in takes]


def plain(kind, inputs, root, op=np.add):
    """Return the outputs by numpy alone, for each collective in its own words."""
    ranks, nothing = len(inputs), np.zeros(0)
    match kind:
        case "allgather":
            return [np.concatenate(inputs)] * ranks
        case "gather":
            return [np.concatenate(inputs) if r == root else nothing for r in range(ranks)]
        case "scatter":
            return np.split(inputs[root], ranks)
        case "broadcast":
            return [inputs[root]] * ranks
        case "alltoall":
            blocks = [np.split(x, ranks) for x in inputs]
            return [np.concatenate([blocks[s][t] for s in range(ranks)]) for t in range(ranks)]
    total = op.reduce(np.stack(inputs)).astype(inputs[0].dtype)
    if kind == "allreduce":
        return [total] * ranks
    if kind == "reduce":
        return [total if r == root else nothing for r in range(ranks)]
    return np.split(total, ranks)


def same(found, wanted):
    return len(found) == len(wanted) and all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


@given(st.sampled_from(KINDS), st.integers(1, 6), st.integers(0, 30), st.data())
@settings(deadline=None)
def test_the_reference_is_the_definition(kind, ranks, length, data):
    root = data.draw(st.integers(0, ranks - 1))
    op = data.draw(st.sampled_from(sorted(OPERATIONS)))
    collective = collective_of(kind, ranks, root)
    inputs = numbers(collective, length)
    assert same(reference(collective, inputs, op), plain(kind, inputs, root, OPERATIONS[op]))


@st.composite
def programs(draw):
    kind, ranks, chunks = draw(st.sampled_from(KINDS)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    make = ring if kind in RINGS and draw(st.booleans()) else direct
    return make(kind, ranks, chunks, draw(st.integers(0, ranks - 1)))


@pytest.mark.slow
@given(
    programs(), st.integers(0, 40), st.sampled_from([None, 1, 2, 3]), st.sampled_from(DTYPES), st.booleans(), st.data()
)
@settings(deadline=None, max_examples=examples(200))
def test_right_programs_compute_the_collective(program, length, split, dtype, inplace, data):
    least = smallest_depth(program, split)
    depth = data.draw(st.sampled_from([None, least, least + 1]))
    op = data.draw(st.sampled_from(sorted(OPERATIONS)))
    if dtype == "complex128" and op in ("min", "max"):
        op = "sum"
    inputs = numbers(program.collective, length, dtype)
    before = [None if x is None else x.copy() for x in inputs]
    found = run(program, inputs, op=op, inplace=inplace, fifo_depth=depth, split=split)
    wanted = reference(program.collective, inputs, op)
    if dtype in ("float32", "complex128", "float64"):
        assert all(np.allclose(a, b) for a, b in zip(found, wanted, strict=True))
    else:
        assert same(found, wanted)
    assert all(x.dtype == dtype for x in found)
    assert same([x for x in inputs if x is not None], [x for x in before if x is not None])


def test_an_operation_may_be_a_function():
    program = direct("allreduce", 4, 3)
    inputs = numbers(program.collective, 25)
    wanted = np.bitwise_xor.reduce(np.stack(inputs))
    assert same(run(program, inputs, op=lambda a, b: a ^ b), [wanted] * 4)


def test_the_collective_names_the_operation():
    program = ring("allreduce", 3)
    inputs = numbers(program.collective, 7)
    assert same(run(program, inputs), [sum(inputs)] * 3)


@given(programs(), st.integers(0, 10**6))
@settings(deadline=None)
def test_the_verifier_accepts_no_edit_that_computes_something_else(program, seed):
    """Any one field changed: either the verifier says no, or the result is still right."""
    rng = np.random.default_rng(seed)
    if program.num_instructions == 0:
        return
    row = int(rng.integers(program.num_instructions))
    name = ["src_offset", "dst_offset", "count", "opcode", "src_buffer", "dst_buffer"][rng.integers(6)]
    old = int(getattr(program, name)[row])
    changed = edited(program, row, **{name: max(0, old + int(rng.choice([-2, -1, 1, 2])))})
    if rng.random() < 0.2:
        changed = dropped(program, row)
    for inplace in (False, True):
        if verify_program(changed, inplace=inplace).ok:
            inputs = numbers(program.collective, 24)
            assert same(run(changed, inputs, inplace=inplace), reference(program.collective, inputs))


def test_a_wrong_offset_computes_something_wrong():
    program = ring("allreduce", 3)
    wrong = edited(program, find(program, rank=1, block=0, step=2), src_offset=0)
    inputs = numbers(program.collective, 9)
    assert not same(run(wrong, inputs), reference(program.collective, inputs))


def test_a_deadlock_is_said():
    program = ring("allreduce", 3)
    with pytest.raises(CollcError, match=r"deadlock: cycle of 3 waits: rank 0, threadblock 0, step 1 waits") as caught:
        run(program, numbers(program.collective, 9), fifo_depth=1)
    assert caught.value.diagnostics[0].code == "C0401"


def test_reading_what_nobody_wrote_is_said():
    program = direct("allreduce", 3)
    wrong = edited(program, find(program, rank=2, block=0, step=1), src_offset=2)
    with pytest.raises(CollcError, match=r"single|reads scratch chunk|postcondition") as caught:
        run(edited(wrong, find(program, rank=2, block=0, step=0), dst_offset=0), numbers(program.collective, 9))
    assert "rank 2, threadblock 0, step 1" in str(caught.value)


def test_a_program_that_is_not_well_formed_is_said():
    program = ring("allreduce", 3)
    with pytest.raises(CollcError, match="bounds"):
        run(edited(program, 0, src_offset=3), numbers(program.collective, 9))


def test_an_output_that_nobody_wrote_is_said():
    program = direct("allgather", 1)
    with pytest.raises(CollcError, match="no instruction has written output chunk 0 of rank 0"):
        run(dropped(program, 0), numbers(program.collective, 9))


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("allreduce", [np.zeros(3)], "1 inputs for 2 ranks"),
        ("allreduce", [np.zeros(3), np.zeros(4)], "different lengths: 3, 4"),
        ("allreduce", [np.zeros(3), np.zeros(3, int)], "different types: float64, int64"),
        ("allreduce", [np.zeros(3), None], "rank 1 has no input"),
        ("broadcast", [np.zeros(3), np.zeros(3)], "rank 1 has an input, but broadcast takes none from it"),
        ("allgather", [np.zeros((2, 2)), np.zeros(3)], "rank 0 has 2 dimensions"),
        ("reduce-scatter", [np.zeros(3), np.zeros(3)], "3 elements is not 2 blocks of equal size"),
    ],
)
def test_inputs_that_do_not_fit(kind, inputs, message):
    program = direct(kind, 2)
    for execute in (lambda: run(program, inputs), lambda: reference(program.collective, inputs)):
        with pytest.raises(CollcError, match=message) as caught:
            execute()
        assert caught.value.diagnostics[0].code == "C0207"


def test_an_unknown_operation():
    with pytest.raises(CollcError, match="unknown operation `summ`") as caught:
        run(direct("allreduce", 2), [np.zeros(2), np.zeros(2)], op="summ")
    assert caught.value.diagnostics[0].hint == "did you mean `sum`?"


def test_shards_of_any_counts() -> None:
    collective = Collective("reduce-scatter", 3, weights=(1, 0, 5))
    program = direct("reduce-scatter", 3, chunks=2)
    program = attrs.evolve(program, collective=collective)
    for counts in ((1, 0, 5), (0, 0, 0), (7, 2, 1)):
        inputs = [np.arange(sum(counts)) * (rank + 1) for rank in range(3)]
        found = run(program, inputs, counts=counts)
        assert [len(one) for one in found] == list(counts)
        needed = reference(collective, inputs, counts=counts)
        assert all(np.array_equal(a, b) for a, b in zip(found, needed, strict=True))
    assert [len(one) for one in run(program, [np.arange(6)] * 3)] == [1, 0, 5]


@pytest.mark.parametrize("counts", [(1, 2), (1, -1, 2), (1, 1, 1)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, ...]) -> None:
    collective = Collective("reduce-scatter", 3, weights=(1, 0, 5))
    with pytest.raises(CollcError) as caught:
        reference(collective, [np.arange(6)] * 3, counts=counts)
    assert caught.value.diagnostics[0].code == "C0207"
