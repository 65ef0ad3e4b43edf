"""``collc convert``: anyone's algorithm for another runtime or target, right there too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import programs
import pytest
from commands import Ran
from foreign_files import IN_PLACE, alltoall, ring, written
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import xml
from msccl_judge import judge
from sampling import examples

import collc as package
from collc.backends.msccl_xml import MscclXml, read, verify_text, write
from collc.backends.msccl_xml.both_ways import with_both_uses
from collc.backends.msccl_xml.published import publish
from collc.backends.simulator import program_traffic
from collc.frontends import coll
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program
from collc.ir.text import parse_ir
from collc.ir.verify import verify_program
from collc.passes.program.threadblocks import BalanceThreadblocks
from collc.passes.program.unfuse import Unfuse

Collc = Callable[..., Ran]


def in_place_scatter(ranks: int) -> str:
    """A reduce-scatter that sends every part to its owner, who adds up in its input."""
    return xml(
        "reducescatter", ranks,
        [[(d, d, 0, [f"s i{d} s{r} 1", f"r i{r} s{d} 1", f"re s{d} i{r} 1" + (f" <{k - 1}:2" if k else "") + " !"])
          for k, d in enumerate(x for x in range(ranks) if x != r)] for r in range(ranks)],
        (ranks, 0, ranks), inplace=1, outofplace=0,
    )  # fmt: skip


def in_place_gather(ranks: int) -> str:
    return xml(
        "allgather", ranks,
        [[(d, d, 0, [f"s o{r} o{r} 1", f"r o{d} o{d} 1"]) for d in range(ranks) if d != r] for r in range(ranks)],
        (0, ranks, 0), inplace=1, outofplace=0,
    )  # fmt: skip


SINGLE = {
    "allreduce in place": IN_PLACE, "alltoall out of place": alltoall(3),
    "reduce-scatter in place": in_place_scatter(3), "allgather in place": in_place_gather(3),
}  # fmt: skip


def doubling(chunks: int, **head: object) -> str:
    """Four ranks add up their whole buffers in place, first with one neighbour, then with the other."""
    n = chunks
    return xml(
        "allreduce", n,
        [[(r ^ 1, r ^ 1, 0, [f"s i0 s0 {n}", f"r i0 s0 {n}", f"re s0 i0 {n} !"]),
          (r ^ 2, r ^ 2, 0, [f"s i0 s{n} {n} <0:2", f"r i0 s{n} {n}", f"re s{n} i0 {n}"])] for r in range(4)],
        (n, n, 2 * n), **{"inplace": 1, "outofplace": 0, **head},
    )  # fmt: skip


# ---- right one way, made right both ways


@pytest.mark.parametrize("text", SINGLE.values(), ids=list(SINGLE))
def test_programs_for_one_use_become_right_both_ways(text: str) -> None:
    found = publish(text)
    assert sorted(found.correct) == [False, True]
    assert found.confirmed == found.correct
    for mode in (True, False):
        assert verify_program(found.program, inplace=mode).ok == found.correct[not mode]
    assert verify_program(found.both_ways).ok


@settings(max_examples=examples(25))
@given(st.sampled_from(list(SINGLE.values())), st.data())
def test_a_copy_less_is_seen(text: str, data: st.DataObject) -> None:
    """The waits for the first copy, and of the last, are each needed: without one there is a race or a wrong result."""
    program = publish(text).both_ways
    place = data.draw(st.integers(0, len(program.deps) - 1))
    copies = np.flatnonzero((program.opcode == Opcode.COPY) & (program.send_peer[program.block] < 0))
    last = program.block_id == np.diff(program.rank_blocks)[program.block_rank] - 1
    about = np.isin(program.deps, copies[last[program.block[copies]]])
    if not about[place]:
        return
    row = int(np.searchsorted(program.dep_start, place, side="right")) - 1
    start = program.dep_start.astype(np.int64).copy()
    start[row + 1 :] -= 1
    broken = attrs.evolve(program, deps=np.delete(program.deps, place), dep_start=start)
    if program.block_start[program.block[row] + 1] == row + 1 and int(program.opcode[row]) == Opcode.SEND:
        return
    assert not verify_program(broken).ok


def test_only_what_the_ranks_have_is_copied() -> None:
    """In a broadcast the root alone has an input; it is in place where the root's output already is."""
    program = Program.build(
        Collective("broadcast", 2, 0), 1, [0, 0], [(0, 1, -1, 0), (1, -1, 0, 0)],
        [[(Opcode.SEND, Buffer.INPUT, 0, Buffer.INPUT, 0, 2, [])],
         [(Opcode.RECV, Buffer.INPUT, 0, Buffer.OUTPUT, 0, 2, [])]],
    )  # fmt: skip
    assert verify_program(program, inplace=True).ok
    assert not verify_program(program, inplace=False).ok
    made = with_both_uses(program, inplace=True)
    assert verify_program(made).ok
    assert (made.num_instructions, int((made.opcode == Opcode.COPY).sum())) == (3, 1)


# ---- between runtimes


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["executor", "msccl", "rccl"])
@pytest.mark.parametrize("kind", ["ring", "allpairs", *SINGLE])
def test_every_runtime_gets_a_file_that_is_right_there(collc: Collc, kind: str, runtime: str) -> None:
    """An independent model of the devices runs them: any threadblock may be late."""
    texts = {"ring": ring(4), "allpairs": MscclXml().emit(programs.allpairs_allreduce(4))[0].text, **SINGLE}
    ran = collc("convert", written("a.xml", texts[kind]), "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "b.xml")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    text = Path("b.xml").read_text()
    report = verify_text(text, runtime=runtime)
    assert report.ok, [c for c in report.checks if not c.ok]
    assert judge(text, runtime, 6) == ""
    old, new = read(texts[kind]), read(text)
    assert (new.inplace, new.outofplace, new.proto, new.ngpus) == (old.inplace, old.outofplace, old.proto, old.ngpus)


@pytest.mark.parametrize("kind", ["ring", *SINGLE])
def test_what_fits_is_kept_as_it_is_arranged(collc: Collc, kind: str) -> None:
    """Threadblocks, peers, channels and steps are the author's where the runtime takes them."""
    text = ring(5, maxBytes=4096, minBytes=40) if kind == "ring" else SINGLE[kind]
    collc("convert", written("a.xml", text), "-t", "msccl-xml", "-o", "b.xml")
    old, new = read(text), read(Path("b.xml").read_text())
    for one, other in zip(old.gpus, new.gpus, strict=True):
        for a, b in zip(one.threadblocks, other.threadblocks, strict=True):
            assert (a.id, a.send, a.recv, a.chan) == (b.id, b.send, b.recv, b.chan)
            assert [(s.type, s.cnt, s.depid, s.deps) for s in a.steps] == [
                (s.type, s.cnt, s.depid, s.deps) for s in b.steps
            ]
    assert (new.name, new.min_bytes, new.max_bytes) == (old.name, old.min_bytes, old.max_bytes)


@pytest.mark.parametrize(
    ("head", "runtime", "largest"),
    [
        ({"maxBytes": 4096}, "msccl", 4097),
        ({"maxBytes": 4096}, "rccl", 4096),
        ({"maxBytes": 0}, "rccl", 0),
        # what microsoft/msccl alone reads: the first size that is too large, and 128 MiB where there is none
        ({"maxBytes": 4096, "outofplace": None}, "executor", 4095),
        ({"maxBytes": None, "outofplace": None}, "rccl", (1 << 27) - 1),
        ({"maxBytes": None, "outofplace": None}, "msccl", 1 << 27),
    ],
)
def test_sizes_mean_the_same_calls(collc: Collc, head: dict[str, object], runtime: str, largest: int) -> None:
    collc("convert", written("a.xml", ring(4, **head)), "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "b.xml")
    assert read(Path("b.xml").read_text()).max_bytes == largest


@pytest.mark.parametrize("runtime", ["executor", "rccl", "msccl"])
@pytest.mark.parametrize("chunks", [1, 3, 6, 60])
def test_chunks_stay_as_large_as_they_were(collc: Collc, chunks: int, runtime: str) -> None:
    """Four ranks double what they have in whole buffers, whose chunks are no multiple of the ranks."""
    text = doubling(chunks, maxBytes=1 << 20)
    written("a.xml", text)
    target = f"msccl-xml{{runtime={runtime}}}"
    assert (ran := collc("convert", "a.xml", "-t", target, "-o", "b.xml")).err == "" and ran.status == 0
    made = read(Path("b.xml").read_text())
    assert (made.nchunksperloop, made.gpus[0].s_chunks) == (chunks, 2 * chunks)
    assert {step.cnt for gpu in made.gpus for block in gpu.threadblocks for step in block.steps} == {chunks}
    assert judge(Path("b.xml").read_text(), runtime, 4) == ""


def test_chunks_are_smaller_where_parts_of_them_move(collc: Collc) -> None:
    """What passes cut is no multiple of the file's chunks: it is written in the program's."""
    written("a.xml", doubling(60, maxBytes=1 << 20))
    ran = collc(
        "convert", "a.xml", "-t", "msccl-xml", "-o", "b.xml", "-p", "replicate{instances=2},balance-threadblocks"
    )
    assert ran.status == 0, ran.err
    assert read(Path("b.xml").read_text()).nchunksperloop > 60
    assert judge(Path("b.xml").read_text(), "executor", 4) == ""


def test_options_of_the_target_go_before_the_file(collc: Collc) -> None:
    given_ = "msccl-xml{min-bytes=8,max-bytes=16,algorithm=mine,proto=LL,inplace=false}"
    collc("convert", written("a.xml", ring(4, maxBytes=4096)), "-t", given_, "-o", "b.xml")
    made = read(Path("b.xml").read_text())
    assert (made.min_bytes, made.max_bytes, made.name, made.proto) == (8, 16, "mine", "LL")
    assert (made.inplace, made.outofplace) == (0, 1)


def test_threads_are_kept_for_the_runtime_that_reads_them(collc: Collc) -> None:
    written("a.xml", ring(4, maxBytes=4096, nthreads=256))
    for runtime, threads in (("msccl", 256), ("executor", None)):
        assert collc("convert", "a.xml", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "b.xml").status == 0
        assert read(Path("b.xml").read_text()).nthreads == threads


def test_what_is_overtaken_elsewhere_is_arranged_anew(collc: Collc) -> None:
    """RCCL ends a send without a barrier under LL: what is sent must not be overwritten at another offset."""
    sent = ["cpy i0 s1 4", "s s1 s0 4", "cpy i0 s2 4"]
    text = xml(
        "allgather", 8, [[(1, 1, 0, [*sent, "r o4 o4 4"]), (-1, -1, 0, ["cpy i0 o0 4"])],
                         [(0, 0, 0, [*sent, "r o0 o0 4"]), (-1, -1, 0, ["cpy i0 o4 4"])]],
        (4, 8, 8), proto="LL",
    )  # fmt: skip
    assert not verify_text(text, runtime="rccl").ok
    assert verify_text(text, runtime="executor").ok
    ran = collc("convert", written("a.xml", text), "-t", "msccl-xml{runtime=rccl}", "-o", "b.xml")
    assert (ran.status, "[C0072]" in ran.err, "ends a send without a barrier" in ran.err) == (0, True, True)
    assert verify_text(Path("b.xml").read_text(), runtime="rccl").ok


def test_reduce_scatter_is_spelled_as_the_runtime_does(collc: Collc) -> None:
    written("a.xml", in_place_scatter(2))
    for runtime, spelling in (("msccl", "reduce_scatter"), ("rccl", "reducescatter"), ("executor", "reducescatter")):
        assert collc("convert", "a.xml", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "b.xml").status == 0
        assert read(Path("b.xml").read_text()).coll == spelling
    again = collc("convert", "b.xml", "-t", "msccl-xml{runtime=executor}", "-o", "-")
    assert read(again.out).coll == "reducescatter"


@pytest.mark.slow
def test_what_does_not_fit_is_arranged_anew_and_said(collc: Collc) -> None:
    """A ring of 40 ranks has 79 steps: microsoft/msccl takes it, the executor takes 64."""
    text = ring(40, maxBytes=1 << 20, outofplace=None)
    assert verify_text(text, runtime="msccl").ok
    ran = collc("convert", written("a.xml", text), "-t", "msccl-xml", "-o", "b.xml")
    assert ran.status == 0
    assert "does not fit runtime executor unchanged; its messages have other threadblocks now [C0072]" in ran.err
    assert "rank 0, threadblock 0 has 79 steps; msccl-executor-nccl takes at most 64" in ran.err
    assert verify_text(Path("b.xml").read_text(), runtime="executor").ok
    as_it_is = ["-p", "unfuse", "--disable-pass", "balance-threadblocks"]
    ran = collc("convert", "a.xml", "-t", "msccl-xml", "-o", "c.xml", *as_it_is)
    assert (ran.status, Path("c.xml").exists()) == (2, False)
    assert "[C0621]" in ran.err
    assert collc("convert", "a.xml", "-t", "msccl-xml", "-o", "c.xml", "-Werror").status == 1
    assert not Path("c.xml").exists()


def ahead() -> str:
    """Return a file in which each sends 4 chunks before it receives, in one threadblock: with FIFOs of 2 that takes
    messages of 2 chunks.
    """
    return xml(
        "alltoall", 8, [[(1, 1, 0, ["s i4 o0 4", "r i4 o4 4", "cpy i0 o0 4"])],
                        [(0, 0, 0, ["s i0 o4 4", "r i0 o0 4", "cpy i4 o4 4"])]],
        (8, 8, 0), proto="LL128", maxBytes=0,
    )  # fmt: skip


@pytest.mark.parametrize("comment", [(), ("no larger: from 7 bytes on it hangs; or so somebody wrote",)])
def test_comments_decide_nothing(collc: Collc, monkeypatch: pytest.MonkeyPatch, comment: tuple[str, ...]) -> None:
    """That larger calls would hang is known of what was written, whatever its comments say."""
    monkeypatch.setattr(MscclXml, "_comments", lambda *_: iter(comment))
    written("a.xml", ahead())
    ran = collc("convert", "a.xml", "-t", "msccl-xml{proto=Simple}", "-o", "b.xml")
    assert "[C0073]" in ran.err and "from 8388616 bytes on it hangs" in ran.err
    assert "hangs" not in collc("convert", "a.xml", "-t", "msccl-xml{proto=LL128}", "-o", "b.xml").err


def test_sizes_that_hang_elsewhere_are_left_out_and_said(collc: Collc) -> None:
    text = ahead()
    assert verify_text(text, runtime="executor").ok
    written("a.xml", text)
    ran = collc("convert", "a.xml", "-t", "msccl-xml{proto=Simple}", "-o", "b.xml")
    assert "`a.xml` is for larger calls than runtime executor can run with it [C0073]" in ran.err
    assert "from 8388616 bytes on it hangs" in ran.err
    assert read(Path("b.xml").read_text()).max_bytes == 8 << 20
    asked = "msccl-xml{proto=Simple,max-bytes=4194304}"
    assert collc("convert", "a.xml", "-t", asked, "-o", "b.xml").err == ""
    written("a.xml", text.replace('maxBytes="0"', 'maxBytes="16777216"'))
    ran = collc("convert", "a.xml", "-t", "msccl-xml{proto=Simple}", "-o", "b.xml")
    assert "`a.xml` is for larger calls than runtime executor can run with it [C0073]" in ran.err
    assert read(Path("b.xml").read_text()).max_bytes == 8 << 20
    ran = collc("convert", "a.xml", "-t", "msccl-xml{proto=Simple,max-bytes=16777216}", "-o", "c.xml")
    assert (ran.status, "[C0630]" in ran.err) == (1, True)


# ---- to other targets


@pytest.mark.parametrize("text", [ring(3), *SINGLE.values()], ids=["ring", *SINGLE])
def test_the_ir_is_right_both_ways_and_leads_back(collc: Collc, text: str) -> None:
    ran = collc("convert", written("a.xml", text), "-t", "ir", "-o", "a.ir")
    assert (ran.status, ran.err) == (0, "")
    program = parse_ir(Path("a.ir").read_text())
    assert isinstance(program, Program)
    assert verify_program(program).ok
    assert collc("verify", "a.ir").status == 0
    ran = collc("convert", "a.ir", "-t", "msccl-xml", "-o", "back.xml")
    assert (ran.status, ran.err) == (0, "")
    back = read(Path("back.xml").read_text())
    assert (back.inplace, back.outofplace) == (1, 1)
    assert judge(Path("back.xml").read_text(), "executor", 4) == ""


@pytest.mark.parametrize("kind", list(SINGLE))
def test_it_becomes_c(collc: Collc, kind: str) -> None:
    ran = collc("convert", written("algo.xml", SINGLE[kind]), "-t", "mpi-c", "-t", "ir")
    assert (ran.status, ran.err) == (0, "")
    assert sorted(p.name for p in Path().iterdir()) == ["algo.c", "algo.h", "algo.ir", "algo.xml"]
    assert "int algo(const void *send" in Path("algo.h").read_text()


@pytest.mark.slow
def test_it_runs_on_mpi(collc: Collc, mpich: object) -> None:
    for name, text in {"ring": ring(3), "scatter": in_place_scatter(2), "alltoall": alltoall(3)}.items():
        ran = collc("run", written(f"{name}.xml", text), "--count", "0,7", "--repeat", "1", "--json")
        assert (ran.status, ran.err) == (0, "")
        assert json.loads(ran.out)["ok"]


def test_schedules_become_files_too(collc: Collc) -> None:
    written("a.coll", "topology r = biring(4);\ncollective a = allreduce on r;")
    assert collc("a.coll", "-t", "ir{level=schedule}", "-o", "a.ir").status == 0
    ran = collc("convert", "a.ir", "-t", "msccl-xml{runtime=rccl}", "-o", "a.xml")
    assert (ran.status, ran.err) == (0, "")
    assert verify_text(Path("a.xml").read_text(), runtime="rccl").ok


# ---- simulation


def test_a_program_is_simulated_message_by_message(collc: Collc) -> None:
    """A ring of 4 takes 2(R-1) steps of a quarter of the vector on every link, on any network that has the links."""
    ran = collc("simulate", written("a.xml", ring(4)), "--json", "--size", "1MiB", "--network", "uniring(4)")
    found = json.loads(ran.out)
    assert (found["steps"], found["max_link_load"], found["ranks"]) == (6, "1/4", 4)
    assert json.loads(collc("simulate", "a.xml", "--json").out)["topology"] == "complete(4)"
    assert "[C0040]" in collc("simulate", "a.xml", "--network", "uniring(5)").err


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_all_pairs_are_two_steps(ranks: int) -> None:
    traffic = program_traffic(programs.allpairs_allreduce(ranks), coll.topology(f"complete({ranks})"))
    assert traffic.num_steps == 2
    assert len(traffic) == 2 * ranks * (ranks - 1)
    assert set(traffic.amount.tolist()) == {1}
    with pytest.raises(ValueError, match="ranks"):
        program_traffic(programs.allpairs_allreduce(ranks), coll.topology("complete(7)"))


# ---- what is refused


def test_wrong_algorithms_are_refused_with_the_reason(collc: Collc) -> None:
    text = ring(4).replace('type="rrs"', 'type="rcs"', 1)
    ran = collc("convert", written("a.xml", text), "-t", "mpi-c")
    assert (ran.status, [p.name for p in Path().iterdir()]) == (1, ["a.xml"])
    assert "the algorithm in `a.xml` is wrong, so collc cannot convert it [C0640]" in ran.err
    assert "postcondition" in ran.err
    for verb in ("run", "simulate"):
        assert "[C0640]" in collc(verb, "a.xml").err


def test_a_claim_that_does_not_hold_is_a_warning(collc: Collc) -> None:
    text = IN_PLACE.replace('outofplace="0"', 'outofplace="1"')
    ran = collc("convert", written("a.xml", text), "-t", "msccl-xml", "-o", "b.xml")
    assert (ran.status, "claims to be correct out of place, but it is not" in ran.err) == (0, True)
    assert "[C0641]" in ran.err
    made = read(Path("b.xml").read_text())
    assert (made.inplace, made.outofplace) == (1, 0)


def test_what_a_file_performs_can_be_said(collc: Collc) -> None:
    written("a.xml", ring(3).replace('coll="allreduce"', 'coll="custom"'))
    assert "[C0608]" in collc("convert", "a.xml", "-t", "mpi-c").err
    for verb in ("verify", "simulate"):
        assert "[C0608]" in collc(verb, "a.xml").err
        assert collc(verb, "a.xml", "--collective", "allreduce").status == (verb == "verify")  # no runtime runs it
        assert "[C0201]" in collc(verb, "a.xml", "--collective", "sum").err
    assert collc("convert", "a.xml", "-t", "mpi-c", "--collective", "allreduce").status == 0
    assert "[C0201]" in collc("convert", "a.xml", "-t", "mpi-c", "--collective", "allreduc").err
    assert "[C0203]" in collc("convert", "a.xml", "-t", "mpi-c", "--collective", "allreduce", "--root", "1").err


def test_the_root_is_found_or_told(collc: Collc) -> None:
    text = xml("broadcast", 2, [[(-1, 1, 0, ["r i0 o0 2"])], [(0, -1, 0, ["s i0 o0 2", "cpy i0 o0 2"])]], (2, 2, 0))
    written("a.xml", text)
    assert collc("convert", "a.xml", "-t", "ir", "-o", "a.ir").status == 0
    assert "broadcast ranks 2 root 1" in Path("a.ir").read_text()
    assert collc("convert", "a.xml", "-t", "ir", "-o", "b.ir", "--root", "1").status == 0
    assert "[C0640]" in collc("convert", "a.xml", "-t", "ir", "-o", "c.ir", "--root", "0").err
    assert "[C0204]" in collc("convert", "a.xml", "-t", "ir", "-o", "c.ir", "--root", "2").err


def test_a_broadcast_in_place_may_call_its_buffer_input_everywhere(collc: Collc) -> None:
    """As the language of msccl-tools does; only for calls in place are the two one buffer."""
    chain = [[(1, -1, 0, ["s i0 i0 2"])], [(2, 0, 0, ["rcs i0 i0 2"])], [(-1, 1, 0, ["r i0 i0 2"])]]
    text = xml("broadcast", 2, chain, (2, 0, 0), inplace=1, outofplace=0)
    assert collc("verify", written("a.xml", text)).status == 0
    assert collc("verify", written("b.xml", text.replace('outofplace="0"', 'outofplace="1"'))).status == 1
    for runtime in ("executor", "rccl"):
        ran = collc("convert", "a.xml", "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "c.xml")
        assert (ran.status, ran.err) == (0, "")
        assert judge(Path("c.xml").read_text(), runtime, 4) == ""
    assert collc("convert", "a.xml", "-t", "mpi-c", "-o", "out/").status == 0


@pytest.mark.parametrize("text", [ring(3), *SINGLE.values()], ids=["ring", *SINGLE])
def test_over_oneccl_and_back(collc: Collc, text: str) -> None:
    assert collc("convert", written("a.xml", text), "-t", "oneccl-xml", "-o", "b.xml").status == 0
    assert collc("verify", "b.xml").status == 0
    ran = collc("convert", "b.xml", "-t", "msccl-xml{runtime=rccl}", "-t", "mpi-c", "-o", "out/")
    assert (ran.status, ran.err) == (0, "")
    assert judge(Path("out/b.xml").read_text(), "rccl", 4) == ""
    assert collc("verify", "a.xml", "b.xml").out.count("verified: ") == 2
    assert json.loads(collc("simulate", "b.xml", "--json").out)["ranks"] == read(text).ngpus


def test_names_of_strangers_go_nowhere(collc: Collc) -> None:
    """What a file calls itself names no path and ends no comment."""
    evil = "../../x*/ %s \u202e" + "y" * 200
    text = write(attrs.evolve(read(ring(3)), name=evil))
    written("a.xml", text)
    ran = collc("convert", "a.xml", "-t", "mpi-c", "-t", "ir", "-t", "msccl-xml", "-o", "out/")
    assert (ran.status, sorted(p.name for p in Path("out").iterdir())) == (0, ["a.c", "a.h", "a.ir", "a.xml"])
    assert re.fullmatch(r"\w{1,63}", read(Path("out/a.xml").read_text()).name or "", re.ASCII)
    assert "*/ %s" not in Path("out/a.c").read_text()


# ---- places and options


def test_places(collc: Collc) -> None:
    written("a.xml", ring(3))
    written("b.xml", IN_PLACE)
    assert collc("convert", "a.xml", "-t", "msccl-xml{runtime=rccl}").status == 0
    assert Path("a-rccl.xml").exists()
    ran = collc("convert", "a.xml", "b.xml", "-t", "msccl-xml{runtime=rccl}", "-t", "mpi-c", "-o", "out/", "--json")
    outputs = [Path(o["path"]).name for o in json.loads(ran.out)["outputs"]]
    assert outputs == ["a.xml", "a.c", "a.h", "b.xml", "b.c", "b.h"]
    assert collc("convert", "a.xml", "-t", "msccl-xml", "-o", "a.xml").err.count("[C0005]") == 1
    assert "[C0021]" in collc("convert", "a.xml", "b.xml", "-t", "ir", "-o", "x.ir").err
    Path("sub").mkdir()
    written("sub/a.xml", ring(4))
    ran = collc("convert", "a.xml", "sub/a.xml", "-t", "ir", "-o", "both/")
    assert (ran.status, "several files would be `both/a.ir` [C0021]" in ran.err) == (2, True)
    assert not Path("both").exists()


def test_one_wrong_file_leaves_nothing(collc: Collc) -> None:
    written("a.xml", ring(3))
    written("b.xml", "<algo/>")
    assert collc("convert", "a.xml", "b.xml", "-t", "ir", "-o", "out/").status == 1
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.xml"], "C0025"),
        (["a.xml", "-t", "nccl-plan"], "C0007"),
        (["a.xml", "-t", "msccl"], "C0007"),
        (["a.xml", "-t", "msccl-xml{runtime=nccl}"], "C0010"),
        (["a.coll", "-t", "ir"], "C0018"),
        (["a.xml", "-t", "ir", "--json", "-o", "-"], "C0001"),
        (["a.xml", "-t", "ir", "--root", "x"], "C0001"),
        (["missing.xml", "-t", "ir"], "C0002"),
    ],
)
def test_command_lines_that_cannot_be_carried_out(collc: Collc, arguments: list[str], code: str) -> None:
    written("a.xml", ring(3))
    written("a.coll", "topology t = biring(3);")
    ran = collc("convert", *arguments)
    assert ran.status in (1, 2)
    assert (f"[{code}]" in ran.err, ran.out) == (True, "")


def test_the_library_converts_too(tmp_path: Path) -> None:
    path = tmp_path / "ring.xml"
    path.write_text(ring(3, maxBytes=1 << 20))
    result = package.convert(path, target=["mpi-c", "msccl-xml{runtime=rccl}"])
    assert list(result.files) == ["ring.c", "ring.h", "ring.xml"]
    assert (result.program.num_ranks, result.diagnostics) == (3, ())
    with pytest.raises(CollcError) as failure:
        package.convert(path, target="msccl-xml{runtime=rccl}", passes="bfb")
    assert failure.value.diagnostics[0].code == "C0011"


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("channels", [1, 3])
def test_mixed_threadblocks_are_placed_anew_too(ranks: int, channels: int) -> None:
    """Threadblocks of strangers send, receive, copy and add up in any order, and still can be balanced."""
    aside = xml(
        "allgather", 8, [[(1, 1, 0, ["cpy i0 s1 4", "s s1 s0 4", "cpy i0 s2 4", "r o4 o4 4", "cpy i0 o0 4"])],
                         [(0, 0, 0, ["s i0 s0 4", "r o0 o0 4"]), (-1, -1, 0, ["cpy i0 o4 4"])]],
        (4, 8, 8),
    )  # fmt: skip
    for text in (ring(max(ranks, 3)), in_place_scatter(ranks), alltoall(ranks), in_place_gather(ranks), aside):
        program = Unfuse().run(publish(text).both_ways)
        made = BalanceThreadblocks(channels=channels).run(program)
        assert verify_program(made).ok
        assert verify_program(BalanceThreadblocks(channels=channels, max_steps=12).run(made)).ok
