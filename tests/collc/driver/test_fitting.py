"""What passes declare that they vary is lessened for whatever says that it is a limit, and for nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from places import ROOT
from programs import ring_allgather

from collc.backends.ir_text import IrText
from collc.backends.msccl_xml import MscclXml
from collc.driver import pipeline
from collc.driver.compilation import make_jobs
from collc.driver.compile import compile_collective
from collc.driver.plan import Recipe
from collc.driver.result import CollectiveResult, Settings
from collc.ir.diagnostic import CollcError, Excess, Kind, error
from collc.ir.schedule import Forest, Schedule
from collc.ir.spec import Option
from collc.messages.internal import is_fatal, memory_error
from collc.messages.render import as_json, as_sarif
from collc.passes.base import Pass, remark
from collc.passes.knobs import Knob
from collc.passes.schedule import pipelining
from collc.passes.synthesis.breadth_first.bfb import BFB
from collc.reading.coll import load_spec
from collc.reading.loading import Loading
from collc.registry.elements import parse_elements

BOX = "collective c = broadcast on biring(4) { root: 0, size: 4 MiB };\n"
UNLIKE = (
    "topology t { rank n[4]; for r in 0..4 "
    "{ link n[r] -> n[(r + 1) mod 4] : 101 GB/s; link n[(r + 1) mod 4] -> n[r] : 211 GB/s; } }\n"
    "collective c = allreduce on t;\n"
)


@attrs.frozen
class Few(IrText):
    """A target for few instructions, which nobody but this file knows."""

    name: ClassVar[str] = "few"
    most: int = 1 << 30
    plain: bool = False  # whether the refusal says nothing of a limit
    seen: list[int] = attrs.field(factory=list, eq=False)

    def emit(self, ir: Any) -> Any:
        self.seen.append(ir.num_instructions)
        if ir.num_instructions > self.most:
            found = None if self.plain else Excess("instructions", ir.num_instructions, self.most)
            raise error("T0001", f"{ir.num_instructions} instructions; it takes {self.most}", excess=found)
        return super().emit(ir)


def compiled(text: str, target: Few, passes: str | None = None) -> CollectiveResult:
    (job,) = make_jobs(load_spec(text, "x.coll", Loading()))[0]
    recipe = Recipe("2", None if passes is None else parse_elements(passes, "p"))
    return compile_collective(job.request, (target,), Settings(recipe))


def whole(text: str, passes: str | None = None) -> int:
    """Return how many instructions there are where there is no limit."""
    target = Few()
    compiled(text, target, passes)
    return target.seen[-1]


def refused(text: str, target: Few, passes: str | None = None) -> CollcError:
    with pytest.raises(CollcError) as caught:
        compiled(text, target, passes)
    return caught.value


# ---- limits of a target that nobody knows


def test_pieces_are_fewer_for_a_limit_nobody_listed() -> None:
    text = BOX + "schedule c using forest;\n"
    most = whole(text) // 2
    target = Few(most=most)
    made = compiled(text, target)
    assert target.seen[-1] <= most < target.seen[0]
    forest = compiled(text, Few()).forest
    assert made.forest is not None and forest is not None and made.forest.pieces < forest.pieces
    assert all(report.ok for report in made.reports)


def test_pieces_that_were_asked_for_are_named_in_the_hint() -> None:
    text = BOX + "schedule c using forest { pieces: 16 };\n"
    (found,) = refused(text, Few(most=whole(text.replace("16", "8")))).diagnostics
    assert (found.code, found.kind, found.hint) == ("T0001", Kind.LIMIT, "8 pieces fit: `pieces: 8`")
    assert (
        found.excess is not None and found.excess.what == "instructions" and found.excess.found > found.excess.allowed
    )


def test_one_piece_is_singular_in_the_hint() -> None:
    text = BOX + "schedule c using forest { pieces: 2 };\n"
    (found,) = refused(text, Few(most=whole(text.replace("2 }", "1 }")))).diagnostics
    assert found.hint == "1 piece fits: `pieces: 1`"


def test_chunks_are_fewer_for_a_limit_nobody_listed() -> None:
    text = UNLIKE + "schedule c using bfb;\n"
    most = whole(text) - 1
    made = compiled(text, Few(most=most))
    assert made.made is not None and made.made.num_instructions <= most
    assert any("discretize: in more than" in said and "limits of `few`" in said for said in made.remarks)


def test_a_candidate_of_auto_has_fewer_pieces_for_a_limit_nobody_listed() -> None:
    text = BOX + 'schedule c using auto { candidates: "forest" };\n'
    free = compiled(text, Few())
    made = compiled(text, Few(most=free.made.num_instructions // 2 if free.made else 0))
    assert made.forest is not None and free.forest is not None and made.forest.pieces < free.forest.pieces
    assert made.choice is not None
    assert any(f"more pieces than fit, which are {made.forest.pieces}" in one.reason for one in made.choice.skipped)


def test_pieces_that_were_found_to_fit_are_not_compiled_again() -> None:
    """The candidate with fewer pieces has the files that the candidate with more pieces got in the end."""
    text = BOX + 'schedule c using auto { candidates: "forest" };\n'
    target = Few(most=whole(text) // 2)
    made = compiled(text, target)
    assert made.forest is not None and made.forest.pieces > 1
    assert target.seen[-1] <= target.most and all(number > target.most for number in target.seen[:-1])
    alone = compiled(BOX + f"schedule c using forest {{ pieces: {made.forest.pieces} }};\n", Few())
    assert made.made == alone.made and made.remarks == alone.remarks
    assert made.request is not None and made.request.schedule.options == (Option("pieces", made.forest.pieces),)


def test_several_targets_may_need_other_pieces_each() -> None:
    """Only the last target's number is known, so both are compiled in it."""
    text = BOX + 'schedule c using auto { candidates: "forest" };\n'
    first, last = Few(), Few(most=whole(text) // 2)
    (job,) = make_jobs(load_spec(text, "x.coll", Loading()))[0]
    made = compile_collective(job.request, (first, last), Settings(Recipe("2")))
    assert first.seen[-1] == last.seen[-1] <= last.most < first.seen[0]
    assert made.forest is not None and all(report.ok for report in made.reports)


def test_remarks_of_programs_beyond_a_limit_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    run = pipelining.Pipelining.run

    def remarking(this: pipelining.Pipelining, ir: Any) -> Any:
        made = run(this, ir)
        remark(f"pipelining: {made.num_steps} steps")
        return made

    monkeypatch.setattr(pipelining.Pipelining, "run", remarking)
    text = BOX + "schedule c using forest;\n"
    made = compiled(text, Few(most=whole(text) // 2))
    assert made.schedule is not None
    assert [text for text in made.remarks if text.startswith("pipelining")] == [
        f"pipelining: {made.schedule.num_steps} steps"
    ]


@pytest.mark.parametrize("most", [1, 3])
def test_trees_that_no_target_takes_in_so_many_pieces_are_compiled_once(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `auto` measured in more pieces than are ever written out is no reason to compile, only to measure again."""
    monkeypatch.setattr(pipelining, "_most_pieces", lambda forest, limits: most)
    ran, run = list[int](), pipelining.Pipelining.run

    def noted(this: pipelining.Pipelining, ir: Any) -> Any:
        made = run(this, ir)
        ran.append(int(made.num_steps))
        return made

    monkeypatch.setattr(pipelining.Pipelining, "run", noted)
    made = compiled(BOX + 'schedule c using auto { candidates: "forest" };\n', Few())
    assert made.forest is not None and made.forest.pieces == most and len(ran) == 1
    assert made.choice is not None
    assert [one.reason for one in made.choice.skipped] == [f"more pieces than fit, which are {most}"]


@pytest.mark.parametrize("fit", [1, 2, 3, 5])
def test_pieces_to_write_are_those_that_a_compilation_writes(fit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halved as the driver halves them, until all transfers fit."""
    text = BOX + "schedule c using forest;\n"
    free = compiled(text, Few()).forest
    assert isinstance(free, Forest) and free.pieces >= 8 and pipelining.pieces_to_write(free) == free.pieces
    monkeypatch.setattr(pipelining, "_MOST_TRANSFERS", fit * pipelining._transfers(free))
    found = pipelining.pieces_to_write(free)
    fewer = compiled(text, Few()).forest
    assert fewer is not None and found == fewer.pieces <= fit < 2 * found


def test_auto_takes_another_candidate_where_the_least_is_too_much() -> None:
    text = 'collective c = allreduce on biring(4);\nschedule c using auto { candidates: "bfb, recursive-doubling" };\n'
    least = whole("collective c = allreduce on biring(4);\nschedule c using recursive-doubling;\n")
    made = compiled(text, Few(most=least))
    assert made.choice is not None and made.choice.intervals[0].algorithm.scheduler == "recursive-doubling"
    steps = [one.step for one in made.timings]
    assert "bfb" in steps and steps.index("bfb") < steps.index("recursive-doubling")  # the time of what does not fit
    assert any("[T0001]" in one.reason for one in made.choice.skipped)


@pytest.mark.parametrize("using", ["bfb", "forest", 'auto { candidates: "bfb, forest" }'])
def test_what_is_no_limit_is_tried_once(using: str) -> None:
    """The same refusal by the same code, which does not say that it is one of a limit: nothing else is tried."""
    text = (UNLIKE if using == "bfb" else BOX) + f"schedule c using {using};\n"
    target = Few(most=1, plain=True)
    assert [d.code for d in refused(text, target).diagnostics] == ["T0001"]
    assert len(target.seen) == 1


# ---- passes that nobody knows


@attrs.frozen
class Split(Pass):
    """Send every transfer in several, each a part of it."""

    name: ClassVar[str] = "split"
    summary: ClassVar[str] = "a pass of a test"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob(
            "times",
            "splits",
            "parts of a message",
            lambda this, given, make: this.times or 8,
            free=True,
            word="part of a message",
        ),
    )

    times: int | None = None

    def run(self, ir: Schedule) -> Schedule:
        n = self.times or 8
        length, part = np.repeat(ir.hi.astype(np.int64) - ir.lo, n), np.tile(np.arange(n), len(ir))
        lo = np.repeat(ir.lo.astype(np.int64) * n, n) + part * length
        columns = {c: np.repeat(getattr(ir, c), n) for c in ("step", "action", "shard", "route")}
        return attrs.evolve(ir, parts=ir.parts * n, lo=lo, hi=lo + length, discrete=False, **columns)


@attrs.frozen
class Planned(BFB):
    """A scheduler that is told how many chunks to make, by a name of its own."""

    name: ClassVar[str] = "bfb"
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob("batches", "chunks", "batches", lambda this, given, make: this.batches, word="batch"),
    )

    batches: int = 16

    def run(self, ir: Any) -> Any:
        return Split(self.batches).run(BFB().run(ir))


@attrs.frozen
class Undeclared(Planned):
    varies: ClassVar[tuple[Knob, ...]] = ()


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Pass]]:
    """The passes of this file, by name, beside those that there are."""
    known, mine = pipeline.pass_class, dict[str, type[Pass]](split=Split)
    monkeypatch.setattr(pipeline, "pass_class", lambda name, span=None: mine.get(name) or known(name, span))
    return mine


RING = "collective c = allgather on biring(4);\nschedule c using bfb;\n"
CHAIN = "bfb,split,discretize,lower"


def test_a_pass_that_declares_a_number_is_given_less(ours: dict[str, type[Pass]]) -> None:
    all_parts, two = whole(RING, CHAIN), whole(RING, CHAIN.replace("split", "split{times=2}"))
    assert two < all_parts
    made = compiled(RING, Few(most=two), CHAIN)
    assert made.plans[0].passes[1] == Split(2)
    assert made.made is not None and made.made.num_instructions <= two


def test_what_somebody_fixed_in_such_a_pass_is_kept(ours: dict[str, type[Pass]]) -> None:
    two = whole(RING, CHAIN.replace("split", "split{times=2}"))
    (found,) = refused(RING, Few(most=two), CHAIN.replace("split", "split{times=8}")).diagnostics
    assert found.hint == "2 parts of a message fit: `split{times=2}`"


def test_a_scheduler_that_declares_a_number_gets_a_hint(ours: dict[str, type[Pass]]) -> None:
    ours["bfb"] = Planned
    four = whole(RING, "bfb{batches=4},discretize,lower")
    (found,) = refused(RING, Few(most=four), "bfb,discretize,lower").diagnostics
    assert found.hint == "4 batches fit: `batches: 4`"
    (found,) = refused(RING, Few(most=four), CHAIN).diagnostics
    assert found.hint == "4 batches fit: `batches: 4` with `split{times=1}`"
    ours["bfb"] = Undeclared
    assert refused(RING, Few(most=1), "bfb,discretize,lower").diagnostics[0].hint is None


# ---- kinds

#: codes of which every mistake is that there is too much of something
LIMITS = (
    "C0047", "C0509", "C0525", "C0546", "C0563", "C0594", "C0621", "C0622", "C0623", "C0624", "C0625", "C0626",
    "C0627", "C0808",
)  # fmt: skip
#: codes of which every mistake is that a program is not arranged as a runtime needs it
MISFITS = ("C0620", "C0633", "C0634")


def raised(codes: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
    """Yield the code and the source of the further arguments of every call that makes a mistake of these codes."""
    rooms = [ROOT / room for room in ("ir", "passes", "backends", "collc")]
    places = (path for room in rooms for path in sorted(room.rglob("*.py")))
    texts = (path.read_text() for path in places)
    trees = [ast.parse(text) for text in texts if any(f'"{code}"' in text for code in codes)]
    for call in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)):
        said = {one.value for one in call.args if isinstance(one, ast.Constant)}
        for code in said.intersection(codes):
            yield code, {f"{word.arg}={ast.unparse(word.value)}" for word in call.keywords}


def test_every_mistake_of_these_codes_says_what_it_is() -> None:
    found = list(raised(LIMITS))
    assert {code for code, _ in found} == set(LIMITS)
    for code, words in found:
        assert any("Excess(" in word or "_excess(" in word or word == "None=over" for word in words), (code, words)
    assert {code for code, words in raised(MISFITS) if "kind=Kind.MISFIT" in words} == set(MISFITS)
    assert all("kind=Kind.MISFIT" in words for _, words in raised(MISFITS))


def test_limits_of_a_runtime_say_how_much_there_is() -> None:
    with pytest.raises(CollcError) as caught:
        MscclXml().emit(ring_allgather(33))
    (found,) = caught.value.diagnostics
    assert (found.code, found.kind, found.excess) == ("C0621", Kind.LIMIT, Excess("steps", 65, 64))


def test_kinds_follow_from_the_rest_where_none_is_given() -> None:
    assert error("C0001", "x").diagnostics[0].kind is Kind.MISTAKE
    assert error("C0001", "x", exit_status=3).diagnostics[0].kind is Kind.INFEASIBLE
    assert error("C0001", "x", exit_status=3, excess=Excess("steps", 2, 1)).diagnostics[0].kind is Kind.LIMIT
    assert is_fatal(memory_error("x")) and not is_fatal(error("C0023", "x"))


def test_kinds_of_several_diagnostics() -> None:
    one, other = error("C0001", "x"), error("C0001", "x", excess=Excess("steps", 2, 1))
    both = CollcError([*one.diagnostics, *other.diagnostics])
    assert other.is_only(Kind.LIMIT) and not both.is_only(Kind.LIMIT)
    assert both.is_partly(Kind.LIMIT) and not one.is_partly(Kind.LIMIT)


def test_tools_are_told_of_what_there_is_too_much() -> None:
    found = error("C0621", "65 steps", excess=Excess("steps", 65, 64)).diagnostics
    for text in (as_json(found), as_sarif(found, "1")):
        plain = "".join(text.split())
        assert '"kind":"limit","excess":{"what":"steps","found":65,"allowed":64}' in plain


def test_a_forest_is_kept_as_it_was_streamed() -> None:
    """The pieces are those that the pass took, whichever they are."""
    made = compiled(BOX + "schedule c using forest;\n", Few(), "forest,pipelining{pieces=3}")
    assert isinstance(made.forest, Forest) and made.forest.pieces == 3
