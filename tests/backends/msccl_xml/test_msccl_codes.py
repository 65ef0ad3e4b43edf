"""Each finding of the MSCCL-XML checks has a code of its own; here is a small file, or program, that shows each."""

from __future__ import annotations

import numpy as np
import programs
import pytest
from msccl_files import xml

from collc.backends import interpreter
from collc.backends.msccl_xml import MscclXml, read, verify_text
from collc.backends.msccl_xml.limits import check_limits
from collc.backends.msccl_xml.profiles import PROFILES
from collc.backends.msccl_xml.structure import check_structure
from collc.backends.msccl_xml.tokens import check_tokens
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError
from collc.ir.program import Buffer, Opcode, Program

SWAP = [[(1, -1, 0, ["s i0 o1 1"]), (-1, 1, 0, ["r i0 o1 1"])], [(0, -1, 0, ["s i0 o0 1"]), (-1, 0, 0, ["r i0 o0 1"])]]


def alone(*steps: str) -> str:
    """An allgather of one rank whose only threadblock has these steps."""
    return xml("allgather", 1, [[(-1, -1, 0, steps)]], (1, 1, 2))


def found(text: str, runtime: str | None = None) -> dict[str, str]:
    """Return the findings by code: those of every file, or those of a runtime."""
    algorithm = read(text)
    findings = check_structure(algorithm) if runtime is None else check_limits(algorithm, PROFILES[runtime])
    return {f.code: f.message for f in reversed(findings)}


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("C0609", xml("allgather", 2, [SWAP[0], []], (1, 2, 0)), "rank 1 has no threadblock"),
        ("C0610", xml("allgather", 2, [SWAP[0], [(9, -1, 0, ["s i0 o0 1"])]], (1, 2, 0)), "rank 1, threadblock 0"),
        ("C0611", alone("s i0 o0 1"), "rank 0, threadblock 0, step 0"),
        ("C0612", alone("cpy i0 s0 1", "cpy i0 o0 1 <0:7"), "rank 0, threadblock 0, step 1"),
        ("C0613", alone("cpy i0 s1 2"), "rank 0, threadblock 0, step 0"),
        ("C0614", alone("re i0 s0 1", "re i0 s0 2"), "rank 0, threadblock 0"),
    ],
)
def test_findings_of_every_file(code: str, text: str, words: str) -> None:
    """Numbering, connections, steps, waits, bounds, runs of reductions: the place is named."""
    assert words in found(text)[code]
    assert not verify_text(text, "planted.xml").ok


def test_findings_of_a_runtime() -> None:
    """RCCL runs no fused step; microsoft/msccl wants chunk counts that add up; executor wants every attribute."""
    fused = xml("allgather", 2, [[(1, 1, 0, ["rcs i0 o0 1"])], [(0, 0, 0, ["rcs i0 o0 1"])]], (1, 2, 0))
    assert "RCCL does not run `rcs`" in found(fused, "rccl")["C0620"]
    assert (
        "which msccl-executor-nccl needs"
        in found(xml("allgather", 2, SWAP, (1, 2, 0), minBytes=None), "executor")["C0628"]
    )
    odd = xml("allgather", 6, SWAP, (1, 2, 0))
    assert "i_chunks 1 times 2 ranks must be nchunksperloop, 6, or 0" in found(odd, "msccl")["C0629"]
    overtaken = (
        alone("s i0 o0 1", "cpy s0 i1 2").replace('send="-1"', 'send="0"').replace('i_chunks="1"', 'i_chunks="3"')
    )
    wide = overtaken.replace('type="s" srcbuf="i" srcoff="0"', 'type="s" srcbuf="i" srcoff="2"').replace("Simple", "LL")
    assert "ends a send without a barrier with LL" in found(wide, "rccl")["C0634"]


def test_the_tokeniser_s_findings() -> None:
    """A tab is white space to XML, not to the runtimes."""
    (finding,) = check_tokens(alone("cpy i0 o0 1").replace("      <step", "\t<step"))
    assert finding.code == "C0605" and finding.message.startswith("line 4: ")


def test_an_unknown_runtime() -> None:
    with pytest.raises(CollcError, match="C0606") as caught:
        verify_text(alone("cpy i0 o0 1"), "x.xml", runtime="rcl")
    assert caught.value.diagnostics[0].hint == "did you mean `rccl`?"


def test_a_program_that_deadlocks_at_every_size_is_not_written() -> None:
    """Two ranks that each send three chunks, one by one, before they receive: FIFOs of depth 2 fill up."""
    i, o = Buffer.INPUT, Buffer.OUTPUT
    own = [[(Opcode.SEND, i, k, i, 0, 1, ()) for k in range(3)] for _ in range(2)]
    other = [[(Opcode.RECV, i, 0, o, 3 * (1 - r) + k, 1, ()) for k in range(3)] for r in range(2)]
    kept = [[(Opcode.COPY, i, 0, o, 3 * r, 3, ())] for r in range(2)]
    stuck = Program.build(
        Collective("allgather", 2), 3, [0, 0], [(0, 1, 1, 0), (1, 0, 0, 0)],
        [own[r] + other[r] + kept[r] for r in range(2)],
    )  # fmt: skip
    with pytest.raises(CollcError, match="C0633") as caught:
        MscclXml().emit(stuck)
    found = caught.value.diagnostics[0]
    assert "rank 0, threadblock 0, step 2" in found.message and found.notes == ("it completes with FIFOs of depth 3",)
    assert MscclXml(proto="LL").emit(stuck)


def test_an_unknown_operation() -> None:
    with pytest.raises(CollcError, match="C0206") as caught:
        interpreter.run(programs.ring_allreduce(2), [np.ones(2), np.ones(2)], op="summ")
    assert caught.value.diagnostics[0].hint == "did you mean `sum`?"
