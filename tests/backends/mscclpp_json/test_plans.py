"""Plans are written, read back and compared: same bytes for the same program, every number of a file checked."""

from __future__ import annotations

import json
import random

import attrs
import numpy as np
import pytest
from one_sided_programs import ring, ring_of_packets
from plan_programs import plan_program
from plan_texts import ring_plan

from collc.backends.mscclpp_json import MscclppJson
from collc.backends.mscclpp_json.program import to_one_sided
from collc.backends.mscclpp_json.reader import read
from collc.backends.mscclpp_json.writer import arranged
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.one_sided.opcodes import Op
from collc.ir.one_sided.program import Channel, Item, OneSided, Operation, Transport
from collc.ir.program import Buffer

TARGET = MscclppJson(inplace=True)
IN, OUT, SCRATCH = Buffer
MEMORY, PORT, SWITCH = Transport.MEMORY, Transport.PORT, Transport.SWITCH


def text_of(program: OneSided, target: MscclppJson = TARGET) -> str:
    """Return the plan of a program."""
    (file,) = target.emit(program)
    return file.text


def same(one: OneSided, other: OneSided) -> bool:
    """Return whether two programs have equal columns and settings, but for names."""
    settings = ("collective", "chunks", "packets", "inplace", "double_scratch", "together", "reuse", "threads")
    return all(getattr(one, name) == getattr(other, name) for name in settings) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in OneSided.COLUMNS
    )


@pytest.mark.parametrize("program", [ring(3), ring(7), ring_of_packets(2), ring_of_packets(8)], ids=repr)
def test_rings_are_written_read_back_and_executed(program: OneSided) -> None:
    files = TARGET.emit(program)
    report = TARGET.check(program, files)
    assert report.ok, report.failed
    names = {check.name for check in report.checks}
    assert {"limits", "traps", "races", "postcondition", "same program", "as written"} <= names
    assert files[0].filename == f"{program.name}.json" and files[0].text == TARGET.emit(program)[0].text
    assert TARGET.check(program, [attrs.evolve(files[0], model=None)]).ok, "as after a trip to another process"


def every_kind() -> OneSided:
    """Return a program of two ranks with every kind of operation, channel and item; it computes nothing."""
    here, there, slot = Item(0, IN, 0, 1), Item(1, OUT, 0, 1), Item(0, SCRATCH, 0, 1)
    behind = Item(0, IN, 1, 1, 3)
    operations = [
        Operation(Op.NOP), Operation(Op.BARRIER, number=3, blocks=1),
        Operation(Op.COPY, src=(here,), dst=(slot,)),
        Operation(Op.PUT, MEMORY, (), (here, here), (there, there), 1, 4),
        Operation(Op.PWSF, PORT, (0, 2), (slot, slot), (there, there)),
        Operation(Op.GET, MEMORY, (), (there,), (here,)),
        Operation(Op.SIGNAL, PORT, (0, 2)), Operation(Op.WAIT, MEMORY, (1,)),
        Operation(Op.FLUSH, PORT, (2,), (), (here,)),
        Operation(Op.RRES, MEMORY, (), (here, there), (here, there)), Operation(Op.UPKT, src=(slot,), dst=(here,)),
        Operation(Op.GLRES, SWITCH, (), (behind,), (behind,), loop=0), Operation(Op.NOP, loop=0),
        Operation(Op.GSTORE, SWITCH, (), (here,), (behind,), loop=1), Operation(Op.SEM_RELEASE, links=(0, 1)),
        Operation(Op.SEM_ACQUIRE, links=(1,)),
    ]  # fmt: skip
    channels = [
        Channel(0, 1, PORT), Channel(0, 1, MEMORY), Channel(0, 1, PORT), Channel(0, -1, SWITCH, IN, (0, 1)),
        Channel(1, 0, MEMORY), Channel(1, 0, PORT), Channel(1, 0, PORT), Channel(1, -1, SWITCH, IN, (0, 1)),
    ]  # fmt: skip
    return OneSided.build(
        Collective("allreduce", 2), 1, [(2, 2, 3), (2, 2, 0)], channels, [(0, operations), (0, []), (1, [])],
        semaphores=[(0, 0), (0, 2), (1, 1)], loops=[(64, 1), (128, 1)], name="every kind", inplace=True, threads=512,
    )  # fmt: skip


def test_every_kind_of_operation_is_written_and_read() -> None:
    program = every_kind()
    plan = read(text_of(program, MscclppJson(inplace=True)))
    due = arranged(program)
    assert same(to_one_sided(plan, program.collective), due)
    assert due.channels[0].transport == MEMORY and due.channels[1].transport == PORT, "channels are by transport"
    assert due.operations()[4].links == (1, 2) and due.operations()[11].src[0].channel == 3
    document = json.loads(text_of(program))
    assert document["gpus"][0]["threadblocks"][0]["ops"][11]["iter_context"] == {"unit_size": 64, "num_chunks": 1}
    assert document["num_threads_per_block"] == 512 and document["name"].startswith("every_kind-")


def test_one_operation_stands_on_a_line_and_all_numbers_are_whole() -> None:
    text = text_of(ring(3))
    lines = [line for line in text.splitlines() if '"name"' in line]
    assert len(lines) == 1 + ring(3).num_operations
    assert "." not in text.replace("mscclpp.", "") and text.endswith("}\n")


def test_the_name_is_a_hash_of_all_the_rest() -> None:
    names = {
        json.loads(text_of(ring(3), target))["name"]
        for target in (TARGET, attrs.evolve(TARGET, max_bytes=4800), attrs.evolve(TARGET, reuse=True))
    }
    assert len(names) == 3 and all(name.startswith("collective-") for name in names)
    assert json.loads(text_of(ring(3), attrs.evolve(TARGET, algorithm="mine")))["name"].startswith("mine-")


@pytest.mark.parametrize("packets", [False, True])
@pytest.mark.parametrize("ranks", [3, 5])
def test_an_independent_reader_finds_the_same_program(ranks: int, packets: bool) -> None:
    plan, collective = ring_plan(ranks, packets=packets), Collective("allreduce", ranks)
    assert same(to_one_sided(read(json.dumps(plan)), collective), plan_program(plan, collective))


def test_chunks_are_scaled_so_that_every_shard_has_whole_ones() -> None:
    plan = ring_plan(3, packets=True)
    for gpu in plan["gpus"]:
        gpu.update(input_chunks=4, output_chunks=4)
    program = to_one_sided(read(json.dumps(plan)), Collective("allreduce", 3))
    assert program.chunks == 4 and program.inputs.tolist() == [12] * 3 and program.scratch.tolist() == [12] * 3
    assert set(program.item_count.tolist()) == {3} and set((program.item_offset % 3).tolist()) == {0}


@pytest.mark.parametrize("packets", [False, True])
def test_every_changed_number_of_a_file_is_refused(packets: bool) -> None:
    """Those that execute alike differ from what was written."""
    program = ring_of_packets(3) if packets else ring(3)
    (file,) = TARGET.emit(program)
    luck = random.Random(7)
    places = [at for at, sign in enumerate(file.text) if sign.isdigit()]
    for at in luck.sample(places, 60):
        text = file.text[:at] + str((int(file.text[at]) + 1) % 10) + file.text[at + 1 :]
        assert not TARGET.check(program, [attrs.evolve(file, text=text)]).ok, text[at - 80 : at + 20]


def test_lost_and_doubled_lines_are_refused() -> None:
    program = ring(3)
    (file,) = TARGET.emit(program)
    lines = file.text.splitlines(keepends=True)
    for at in range(0, len(lines), 5):
        for text in ("".join(lines[:at] + lines[at + 1 :]), "".join(lines[:at] + lines[at : at + 1] + lines[at:])):
            report = TARGET.check(program, [attrs.evolve(file, text=text)])
            assert not report.ok or text == file.text, lines[at]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"runtime": "1.0"}, "runtime"), ({"protocol": "LL128"}, "protocol"), ({"ranks_per_node": 0}, "ranks-per-node"),
        ({"instances": 0}, "instances"), ({"blocks": 0}, "blocks"), ({"shares": 65}, "shares"), ({"gpu": "a"}, "gpu"),
        ({"gpu": 0}, "gpu"), ({"min_bytes": -1}, "min-bytes"), ({"min_bytes": 9, "max_bytes": 8}, "max-bytes"),
        ({"algorithm": "a b"}, "algorithm"),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, object], found: str) -> None:
    with pytest.raises(CollcError, match="C0686") as refused:
        MscclppJson(**options)  # type: ignore[arg-type]
    assert refused.value.exit_status == 2 and found in str(refused.value)


def test_limits_follow_from_options() -> None:
    limits = MscclppJson(gpu="h100", runtime="0.8", protocol="LL", shares=2, instances=3).limits
    assert (limits.max_blocks, limits.max_threadblocks, limits.max_items, limits.packets) == (132, 22, 8, True)
    assert MscclppJson(gpu=40, blocks=80).limits.max_blocks == 40
    assert MscclppJson(max_bytes=1 << 16).limits.packets is True and MscclppJson().limits.packets is None


@pytest.mark.parametrize(("op", "dtype"), [("max", "float32"), ("avg", "float32"), ("sum", "float64"), ("sum", "int8")])
def test_what_the_executor_cannot_add_is_refused(op: str, dtype: str) -> None:
    program = attrs.evolve(ring(3), collective=Collective("allreduce", 3, op=op, dtype=dtype))
    with pytest.raises(CollcError, match="C0677"):
        TARGET.emit(program)
    TARGET.require(Collective("allgather", 3, op=op, dtype=dtype))


def test_launches_that_must_not_overlap_are_refused() -> None:
    with pytest.raises(CollcError, match="C0698"):
        TARGET.emit(attrs.evolve(ring(3), together=True))


def test_uneven_sums_are_refused() -> None:
    with pytest.raises(CollcError, match="C0697"):
        TARGET.require(Collective("reduce-scatter", 3, weights=(1, 2, 3)))
