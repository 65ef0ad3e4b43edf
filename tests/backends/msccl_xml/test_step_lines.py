"""Lines of steps, read by columns of bytes and written from columns of numbers, against one line after the other."""

from __future__ import annotations

import re

import attrs
import numpy as np
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

import collc
from collc.backends.base import Artifact
from collc.backends.msccl_xml import MscclXml, read, step_lines, tokens, verify, writer
from collc.backends.msccl_xml.model import Algorithm, Gpu, Threadblock
from collc.backends.msccl_xml.step_lines import beginnings, read_lines, starts_step
from collc.backends.msccl_xml.steps import BUFFERS, KINDS_OF, LINE, Step, Steps, as_steps, divided, joined
from collc.backends.msccl_xml.tokens import check_tokens
from collc.backends.msccl_xml.writer import write
from collc.ir.arrays import Array

LINE_OF = (
    '      <step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{}" deps="{}" '
    'hasdep="{}"/>\n'
)
NATURAL, WHOLE = st.integers(0, 999_999), st.integers(-99_999, 999_999)
STEP = st.builds(
    Step, NATURAL, st.sampled_from(KINDS_OF), st.sampled_from(BUFFERS), WHOLE, st.sampled_from(BUFFERS), WHOLE, NATURAL,
    WHOLE, WHOLE, NATURAL,
)  # fmt: skip


def line_of(step: Step) -> str:
    return LINE_OF.format(*attrs.astuple(step)[:LINE])


def table_of(body: str) -> Array | None:
    """Return the steps of all lines of a text."""
    text = body.encode()
    return read_lines(text, beginnings(text))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few lines be many."""
    monkeypatch.setattr(step_lines, "_SLAB", 200)
    monkeypatch.setattr(step_lines, "_MANY", 2)
    monkeypatch.setattr(writer, "_MANY", 3)


@pytest.mark.usefixtures("small")
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(STEP, min_size=1, max_size=4), min_size=1, max_size=5))
def test_lines_are_read_and_written_as_one_after_the_other(blocks: list[list[Step]]) -> None:
    bodies = ["".join(map(line_of, steps)) for steps in blocks]
    listed = [step for steps in blocks for step in steps]
    table = table_of("".join(bodies))
    assert table is not None and list(Steps(table)) == listed
    start = np.cumsum([0, *map(len, blocks)])
    found = divided(table, start)
    assert joined(found) is table and [list(steps) for steps in found] == blocks
    assert np.array_equal(joined(found[1:]), table[start[1] :]) and np.array_equal(
        joined(found[::-1])[-1], table[len(blocks[0]) - 1]
    )
    gpu = Gpu(0, 1, 1, 1, tuple(Threadblock(k, -1, -1, 0, steps) for k, steps in enumerate(found)))
    text = write(Algorithm("LL", 1, 1, 1, "allreduce", 0, (gpu,)))
    assert re.findall(r" *<step .*\n", text) == [line_of(step) for step in listed]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=3), st.data())
def test_a_changed_line_is_read_right_or_left_to_others(steps: list[Step], data: st.DataObject) -> None:
    body = "".join(map(line_of, steps))
    at = data.draw(st.integers(0, len(body) - 1))
    new = data.draw(st.text(alphabet="<>/\"'=- +019xisn\n\t\0\xff", max_size=3))
    body = body[:at] + new + body[at + data.draw(st.integers(0, 4)) :]
    table = table_of(body)
    if table is not None:
        assert "".join(map(line_of, Steps(table))) == body


@pytest.mark.parametrize(
    "value", ["", "-", "00", "01", "-0", "-01", "+1", " 1", "1.", "1e3", "1234567", "--1", "\u0663"]
)
@pytest.mark.parametrize("name", ["s", "srcoff", "cnt", "deps", "hasdep"])
def test_other_numbers_are_left_to_others(name: str, value: str) -> None:
    body = line_of(Step(0, "s", "i", 0, "o", 0, 1))
    changed = re.sub(rf'\b{name}="[^"]*"', f'{name}="{value}"', body)
    assert changed != body
    assert table_of(body) is not None and table_of(changed) is None


@pytest.mark.parametrize("name", ["s", "cnt", "hasdep"])
def test_negative_numbers_stand_where_they_may(name: str) -> None:
    body = re.sub(rf'\b{name}="[^"]*"', f'{name}="-1"', line_of(Step(0, "s", "i", 0, "o", 0, 1)))
    assert table_of(body) is None


@pytest.mark.parametrize("end", ["", "\n", "x", "      <s", "      <step s"])
@pytest.mark.parametrize("lines", [0, 1, 3])
def test_lines_and_those_of_steps_are_found(lines: int, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_lines, "_SLAB", 7)
    listed = [line_of(Step(k, "s", "i", 0, "o", 0, 1)) for k in range(lines)]
    whole = "".join(["<tb>\n", *listed, "\u0663\n", end])
    text = whole.encode()
    begin = beginnings(text)
    assert [text[at:].split(b"\n")[0].decode() for at in begin.tolist()] == whole.splitlines()
    starts = [line.startswith("      <s") for line in whole.splitlines()]
    assert starts_step(text, begin).tolist() == starts


def test_numbers_far_apart_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_MANY", 1)
    steps = [Step(k, "s", "i", 10**15 * k, "o", 7, 1, -1, -1, 0) for k in range(3)]
    block = Threadblock(0, -1, -1, 0, as_steps(steps))
    text = write(Algorithm("LL", 1, 1, 1, "allreduce", 0, (Gpu(0, 1, 1, 1, (block,)),)))
    assert re.findall(r" *<step .*\n", text) == [line_of(step) for step in steps]


# ---- tokens


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_runs_of_tags_are_counted_as_one_after_the_other(data: st.DataObject) -> None:
    (artifact,) = MscclXml().emit(programs.ring_allgather(2))
    text = artifact.text
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.sampled_from(["", "<tb>", "</tb>", "<a/>", "/", ">", '"', 'x="<', " ", "\n", "<!-- a -->"]))
        text = text[:at] + new + text[at + data.draw(st.integers(0, 9)) :]
    found = check_tokens(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_RUN", re.compile(r"(?!)"))
        assert found == check_tokens(text)


def test_tokens_of_read_lines_are_checked_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    (artifact,) = MscclXml().emit(programs.ring_allgather(4))
    seen: list[str] = []
    monkeypatch.setattr(verify, "check_tokens", lambda text: seen.append(text) or [])
    assert verify.verify_text(artifact.text).ok
    (checked,) = seen
    assert "<step " not in checked and checked.count("<tb ") == artifact.text.count("<tb ")


# ---- one rank changed


TORUS = "topology t = torus(4, 4);\ncollective c = allreduce on t;\nschedule c using bfb;\n"


def _changed_line(text: str, rank: int, name: str) -> str:
    """Return the text with a number of one step of one rank increased."""
    begin = text.index(f'<gpu id="{rank}" ')
    at = text.index('type="rrc"', begin)
    at = text.index(f'{name}="', at) + len(name) + 2
    end = text.index('"', at)
    return f"{text[:at]}{int(text[at:end]) + 1}{text[end:]}"


@pytest.mark.parametrize("rank", [0, 7, 15])
@pytest.mark.parametrize("name", ["srcoff", "dstoff", "cnt", "s"])
def test_one_rank_that_is_not_like_the_others_is_found(rank: int, name: str) -> None:
    """The file of a network whose ranks are alike, read back after the right program was executed."""
    result = collc.compile_source(TORUS, target="msccl-xml")
    program, target = result.program, MscclXml()
    (artifact,) = target.emit(program)
    assert target.check(program, [artifact]).ok
    text = _changed_line(artifact.text, rank, name)
    report = target.check(program, [Artifact(artifact.filename, text, artifact.target, model=artifact.model)])
    assert not report.ok
    assert not {check.name: check.ok for check in report.checks}["as written"]
    if name != "s":  # the device counts steps itself, so only the comparison finds that
        assert len(report.failed) > 1, report.failed


def test_a_read_algorithm_equals_what_was_written_only_if_all_of_it_does() -> None:
    (artifact,) = MscclXml().emit(programs.ring_allgather(3))
    one, other = read(artifact.text), read(artifact.text)
    assert one.equals(other)
    for old in ('recv="', 'cnt="', 'id="2" i_chunks="', 'name="'):
        text = artifact.text.replace(old, f"{old}1", 1)
        assert text != artifact.text
        changed = read(text)
        assert changed != one and not changed.equals(one) and not one.equals(changed)
