"""Reading MSCCL-XML: anyone's files, mistakes with their lines, and what the runtimes make of the steps."""

from __future__ import annotations

import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import xml
from sampling import examples

from collc import compile_source
from collc.backends.msccl_xml import read, to_program, verify_text
from collc.backends.msccl_xml.consume import Wait, operations
from collc.backends.msccl_xml.model import Step, Threadblock
from collc.backends.msccl_xml.program import collective_of
from collc.backends.msccl_xml.tokens import check_tokens
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode

PAIR = xml(
    "allreduce", 2, [[(1, 1, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])],
                     [(0, 0, 0, ["s i0 s0 2", "r i0 s0 2", "re s0 i0 2"])]],
    (2, 0, 2), inplace=1, outofplace=0,
)  # fmt: skip


def failure_of(text: str) -> CollcError:
    with pytest.raises(CollcError) as failure:
        read(text, "algo.xml")
    return failure.value


# ---- forms found in the wild


def test_the_model_is_what_the_file_says() -> None:
    algorithm = read("<!-- first -->\n" + PAIR)
    assert (algorithm.name, algorithm.coll, algorithm.ngpus, algorithm.inplace, algorithm.outofplace) == (
        "test", "allreduce", 2, 1, 0,
    )  # fmt: skip
    assert algorithm.comments == ("first",)
    block = algorithm.gpus[1].threadblocks[0]
    assert block == Threadblock(0, 0, 0, 0, block.steps)
    assert block.steps[2] == Step(2, "re", "s", 0, "i", 0, 2)
    assert block.steps[2].line == 14


def test_files_of_older_tools() -> None:
    """No outofplace, minBytes, maxBytes or name; unknown attributes and elements; attributes in another order."""
    text = re.sub(r' (outofplace|minBytes|maxBytes|name)="[^"]*"', "", PAIR, count=4)
    text = text.replace("<algo", '<algo nthreadblocks="1" redop="sum"', 1).replace("<gpu", "<tag/><gpu", 1)
    algorithm = read(text)
    assert (algorithm.name, algorithm.outofplace, algorithm.min_bytes, algorithm.max_bytes) == (None, None, None, None)
    assert algorithm.num_steps == 6


def test_elements_in_any_order_and_either_form() -> None:
    """gpu and tb elements are found by id; steps run in document order, whatever their s."""
    text = xml(
        "allgather", 2, [[(1, 1, 0, ["s i0 o0 1", "r i0 o1 1"]), (-1, -1, 0, ["cpy i0 o0 1"])],
                         [(0, 0, 0, ["s i0 o1 1", "r i0 o0 1"]), (-1, -1, 0, ["cpy i0 o1 1"])]], (1, 2, 0)
    )  # fmt: skip
    gpus = re.findall(r"  <gpu.*?</gpu>\n", text, re.DOTALL)
    swapped = text.replace(gpus[0], "").replace(gpus[1], gpus[1] + gpus[0])
    blocks = re.findall(r"    <tb.*?</tb>\n", swapped, re.DOTALL)
    swapped = swapped.replace(blocks[0] + blocks[1], blocks[1] + blocks[0])
    swapped = swapped.replace("/>", "></step>", 1)
    assert to_program(read(swapped)).program == to_program(read(text)).program


def test_numbers_are_read_as_c_reads_them() -> None:
    algorithm = read(PAIR.replace('cnt="2"', 'cnt="0x2"').replace('minBytes="0"', 'minBytes=" +010"'))
    assert (algorithm.gpus[0].threadblocks[0].steps[0].cnt, algorithm.min_bytes) == (2, 8)


# ---- mistakes


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "C0601", "not XML"),
        ("not xml at all", "C0601", "not XML"),
        ("\x00\x01\xff", "C0601", "not XML"),
        ("\ud800", "C0601", "not XML"),
        ("<algo>", "C0601", "not XML"),
        ("<system version='1'/>", "C0602", "holds one `algo` element, found `system`"),
        ("<!DOCTYPE algo [<!ENTITY a 'aaaa'>]><algo/>", "C0604", "collc does not read document types"),
        ("<!-- x --> <?p?>\n<!DOCTYPE algo SYSTEM 'file:///etc/passwd'><algo/>", "C0604", "document types"),
    ],
)
def test_what_is_no_algorithm(text: str, code: str, message: str) -> None:
    failure = failure_of(text)
    assert [d.code for d in failure.diagnostics] == [code]
    assert message in failure.diagnostics[0].message
    assert failure.diagnostics[0].span is not None


@pytest.mark.parametrize(
    ("before", "after", "message", "place"),
    [
        (' ngpus="2"', "", "`algo` lacks the attribute `ngpus`, which every runtime needs", "1:1"),
        (
            'proto="Simple"',
            'proto="simple"',
            "`proto` of `algo` must be one of Simple, LL, LL128, found `simple`",
            "1:19",
        ),
        ('type="re"', 'type="ra"', "`type` of `step` must be one of nop, s, r, cpy, re, ", "6:19"),
        ('type="re"', 'type="reduce"', "found `reduce`", "6:19"),
        ('cnt="2"', 'cnt="99999999999"', "`cnt` of `step` needs a whole number of at most 32 bits", "4:72"),
        ('maxBytes="0"', 'maxBytes="9223372036854775808"', "needs a whole number of at most 64 bits", "1:134"),
        ('cnt="2"', f'cnt="{"9" * 5000}"', f"found `{'9' * 37}...`", "4:72"),
        ('srcbuf="s"', 'srcbuf="x"', "`srcbuf` of `step` must be one of i, o, s, found `x`", "6:29"),
        (' hasdep="0"', "", "`step` lacks the attribute `hasdep`", "4:7"),
    ],
)
def test_attributes_that_no_runtime_takes(before: str, after: str, message: str, place: str) -> None:
    (diagnostic,) = failure_of(PAIR.replace(before, after, 1)).diagnostics
    assert diagnostic.code == "C0603"
    assert message in diagnostic.message
    assert str(diagnostic.span) == f"algo.xml:{place}"


@pytest.mark.parametrize(("written", "read_as"), [("2k", 2), ("two", 0), ("08", 0), ("", 0), ("0x", 0), ("2 3", 2)])
def test_numbers_with_a_rest_are_read_as_the_runtimes_do_and_remarked(written: str, read_as: int) -> None:
    algorithm = read(PAIR.replace('cnt="2"', f'cnt="{written}"', 1))
    assert algorithm.gpus[0].threadblocks[0].steps[0].cnt == read_as
    assert algorithm.remarks == (f'line 4: cnt="{written}" is read as {read_as}',)
    assert read(PAIR).remarks == ()


def test_remarks_end_somewhere() -> None:
    many = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1"] * 50)]], (1, 1, 0)).replace('cnt="1"', 'cnt="1x"')
    assert (len(read(many).remarks), read(many).remarks[-1]) == (9, "and 42 more")


# ---- what is no XML and runs all the same


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<algo", "<!-- made with --loops -- twice -->\n<algo"),
        ('name="test"', 'name="test" redop="a<b & c"'),
        ('proto="Simple"', 'proto="Simple" proto="LL"'),
        ("<algo ", "<algo verbose "),
        ("</algo>", "</algo>\n<algo/>"),
        ("<gpu", "<!-- <gpu> --><gpu"),
    ],
)
def test_what_only_the_runtimes_read_is_read_as_they_do(before: str, after: str) -> None:
    text = PAIR.replace(before, after, 1)
    assert check_tokens(text) == []
    assert read(text) == attrs.evolve(read(PAIR), comments=read(text).comments)
    assert [b.steps[0].line for g in read(text).gpus for b in g.threadblocks] == [
        line for line, of in enumerate(text.split("\n"), 1) if '<step s="0"' in of
    ]


@pytest.mark.parametrize(
    "text", ["<algo></gpu>", "<algo><gpu></algo></gpu>", "<algo a=1/>", "<algo/></algo>", "<algo", "x<algo/>"]
)
def test_what_neither_reads(text: str) -> None:
    assert [d.code for d in failure_of(text).diagnostics] == ["C0601"]


def test_attributes_beyond_the_last_looked_at() -> None:
    """Sixteen are looked at: others may stand beyond, needed ones may not."""
    more = " ".join(f'x{k}="1"' for k in range(7))
    assert check_tokens(PAIR.replace(' maxBytes="0"', f' maxBytes="0" {more}', 1)) == []
    (finding,) = check_tokens(PAIR.replace(' maxBytes="0"', f' {more} maxBytes="0"', 1))
    assert "attribute `maxBytes` is number 17 of its element, but the runtimes read 16" in finding.message


# ---- all at once


def test_all_mistakes_are_reported_at_once_up_to_a_limit() -> None:
    text = PAIR.replace(' cnt="2"', "")
    assert [d.span.line for d in failure_of(text).diagnostics if d.span] == [4, 5, 6, 11, 12, 13]
    many = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1"] * 50)]], (1, 1, 0)).replace(' cnt="1"', "")
    assert len(failure_of(many).diagnostics) == 20


def test_entities_do_not_expand() -> None:
    """Ten lines that would be a gigabyte are refused before the parser sees them."""
    names = [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10 if k else "x" * 10}">' for k in range(9)]
    failure = failure_of(f"<?xml version='1.0'?>\n<!DOCTYPE algo [{''.join(names)}]>\n<algo name='&a8;'/>")
    assert failure.diagnostics[0].code == "C0604"
    assert str(failure.diagnostics[0].span) == "algo.xml:2:1"


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_garbage_is_an_error_never_a_traceback(text: str) -> None:
    with pytest.raises(CollcError):
        read(text)


# ---- what the device makes of the steps


def block_of(*steps: str) -> Threadblock:
    text = xml("allreduce", 1, [[(-1, -1, 0, steps)]], (99, 99, 99))
    return read(text).gpus[0].threadblocks[0]


def test_nops_fold_into_the_next_instruction() -> None:
    """Their waits come first; step numbers stay those of the file as long as every nop waits."""
    made = operations(block_of("nop <1:4", "nop <2:0", "cpy i0 o0 1 <3:1 !", "cpy i1 o1 1 !"))
    assert [(op.rows, op.number, op.flagged) for op in made] == [((2,), 2, True), ((3,), 3, True)]
    assert made[0].waits == (Wait(1, 4, 0), Wait(2, 0, 1), Wait(3, 1, 2))
    assert not made[0].refused


def test_a_nop_without_a_wait_shifts_all_later_numbers() -> None:
    made = operations(block_of("nop", "cpy i0 o0 1 !", "cpy i1 o1 1 !"))
    assert [op.number for op in made] == [0, 1]


def test_trailing_nops_vanish() -> None:
    assert len(operations(block_of("cpy i0 o0 1", "nop <1:0"))) == 1


def test_an_instruction_after_nops_must_wait_itself() -> None:
    assert operations(block_of("nop <1:0", "cpy i0 o0 1"))[0].refused


def test_reductions_merge() -> None:
    """Same destination and source buffer, no wait, no flag before: one operation, its number the last one's."""
    made = operations(block_of("re s0 i0 1", "re s1 i0 1", "re s2 i0 2 !", "re s3 i0 1"))
    assert [(op.rows, op.number, op.flagged) for op in made] == [((0, 1, 2), 2, True), ((3,), 3, False)]


@pytest.mark.parametrize(
    "second",
    ["re s1 i1 1", "re o1 i0 1", "re s1 o0 1", "re s1 i0 1 <1:0", "cpy s1 i0 1"],
)
def test_what_ends_a_run(second: str) -> None:
    assert len(operations(block_of("re s0 i0 1", second))) == 2


def test_a_wait_between_merged_reductions_is_passed_over() -> None:
    made = operations(block_of("re s0 i0 1", "nop <1:0", "re s1 i0 1", "cpy i0 o0 1 <2:0"))
    assert [op.rows for op in made] == [(0, 2), (3,)]
    assert made[0].waits == ()
    assert made[1].overtaken == (Wait(1, 0, 1),)


def test_runs_end_only_where_the_threadblock_has_sixteen_reductions() -> None:
    """Counted over the threadblock, and only at exactly 16: a later run can be longer."""
    made = operations(block_of(*["re s0 i0 1"] * 16, *["re s0 i0 1"] * 20))
    assert [len(op.rows) for op in made] == [16, 20]
    made = operations(block_of("re s0 i1 1", *["re s0 i0 1"] * 20))
    assert [len(op.rows) for op in made] == [1, 15, 5]


# ---- to a program


def test_places_and_waits_become_those_of_a_program() -> None:
    text = xml(
        "allreduce", 2, [[(1, 1, 0, ["s i0 s0 2", "r i0 s0 2 !"]), (-1, -1, 0, ["re s0 i0 2 <0:1"])],
                         [(0, 0, 0, ["s i0 s0 2", "r i0 s0 2 !"]), (-1, -1, 0, ["re s0 i0 2 <0:1"])]], (2, 0, 2)
    )  # fmt: skip
    loaded = to_program(read(text))
    program = loaded.program
    assert loaded.scale == 1
    assert (program.chunks, program.num_blocks, program.scratch.tolist()) == (1, 4, [2, 2])
    assert program.dependencies(2) == [1] and program.dependencies(5) == [4]
    assert program.opcode.tolist() == [Opcode.SEND, Opcode.RECV, Opcode.REDUCE] * 2
    assert program.dst_buffer[1] == Buffer.SCRATCH
    assert program.place(5) == "rank 1, threadblock 1, step 0"


def test_a_buffer_cut_in_any_number_of_chunks() -> None:
    """2 chunks of 3 ranks' vector: each becomes 3 of the program's, which cuts every shard in 2."""
    one = ["cpy i0 o0 2"]
    loaded = to_program(read(xml("allreduce", 2, [[(-1, -1, 0, one)]] * 3, (2, 2, 0))))
    assert (loaded.scale, loaded.program.chunks) == (3, 2)
    assert loaded.program.count.tolist() == [6, 6, 6]
    assert loaded.program.input_chunks(0) == 6


def test_custom_collectives_have_nothing_to_be_verified_against() -> None:
    algorithm = read(PAIR.replace('coll="allreduce"', 'coll="custom"'))
    with pytest.raises(CollcError, match="names no collective, so there is nothing to verify") as failure:
        collective_of(algorithm)
    assert failure.value.diagnostics[0].code == "C0608"
    assert collective_of(algorithm, "allreduce").kind == "allreduce"
    typo = read(PAIR.replace('coll="allreduce"', 'coll="allreduc"'))
    with pytest.raises(CollcError) as failure:
        collective_of(typo)
    assert failure.value.diagnostics[0].hint == "did you mean `allreduce`?"


def test_elements_that_no_runtime_reads_are_named() -> None:
    """The reader ignores them, as the runtimes do; the execution misses a copy that no step makes."""
    text = PAIR.replace('<tb id="0"', '<copy i_off="0" o_off="0" cnt="1"/><!-- c --><tb id="0"', 1)
    assert read(text).gpus == read(PAIR).gpus
    assert read(text).remarks == ("line 3: `copy` in `gpu` is ignored, as in the runtimes",)
    twice = text.replace("<algo ", '<algo name="again" ', 1)  # no XML any more, but the runtimes read it
    assert any("`copy` in `gpu` is ignored" in remark for remark in read(twice).remarks)
    (check,) = [c for c in verify_text(text).checks if c.name == "reading"]
    assert check.ok and "`copy`" in check.detail


def test_sizes_that_no_call_has_are_refused() -> None:
    """Between minBytes and maxBytes there must be a multiple of the chunks."""
    steps = [[(-1, -1, 0, [f"cpy i{k} o{k} 1" for k in range(4)])]]
    for runtime in ("executor", "rccl", "msccl"):
        report = verify_text(xml("allreduce", 4, steps, (4, 4, 0), minBytes=5, maxBytes=7), runtime=runtime)
        assert [c.name for c in report.failed] == [f"runtime {runtime}"]
        assert "no size within minBytes 5 and maxBytes 7 is a multiple of 4 bytes" in report.failed[0].detail
        wide = xml("allreduce", 4, steps, (4, 4, 0), minBytes=5, maxBytes=8 + (runtime == "msccl"))
        assert verify_text(wide, runtime=runtime).ok
    with pytest.raises(CollcError) as caught:
        compile_source("collective c = allreduce on uniring(4);", target="msccl-xml{max-bytes=3}")
    assert caught.value.diagnostics[0].code == "C0642"
