"""Passes on one rank of schedules that another group moves than the network's own: exchanges on a torus."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from template_programs import KINDS, cayley_networks, instructions_of, template

import collc
from collc.cli import main
from collc.ir.diagnostic import Excess, error
from collc.ir.laid_out import run_counts
from collc.ir.program import Program
from collc.ir.symmetric_program import SymmetricProgram
from collc.ir.topology import Topology
from collc.ir.verify import verify
from collc.passes.lowering.lower import Lower
from collc.passes.program.lay_out import LayOut
from collc.passes.program.orbit_messages import divided_by_depth
from collc.passes.program.orbit_numbering import divided_for_runs

SPEC = """
topology pod = {network} with {{ bandwidth: 25 Gbps, latency: 10 us }};
collective grads = {kind} on pod {{ size: 1 MiB }};
schedule grads using {scheduler} {{ {options}template: {template} }};
"""
#: network, collective, scheduler, its options: schedules that no translation of the network moves, or whole vectors
EXCHANGES = (
    ("biring(16)", "allreduce", "swing", "variant: bandwidth, "),
    ("torus(8, 4)", "allreduce", "swing", "variant: bandwidth, "),
    ("torus(8, 4)", "allgather", "swing", ""),
    ("torus(4, 4)", "reduce-scatter", "swing", ""),
    ("torus(4, 4)", "allreduce", "swing", "variant: latency, "),
    ("hypercube(4)", "allreduce", "recursive-doubling", ""),
    ("hypercube(4)", "allreduce", "rabenseifner", ""),
    ("hypercube(4)", "allgather", "rabenseifner", ""),
    ("torus(9, 3)", "allreduce", "trivance", "variant: latency, "),
    ("torus(9, 3)", "allreduce", "trivance", "variant: bandwidth, "),
    ("torus(4, 6)", "allreduce", "bucket", ""),
    ("biring(16)", "allreduce", "bine", "variant: bandwidth, "),
)
#: schedules whose ranks forward many messages as they arrive: `fuse` lists all ranks, where a runtime has fused
#: instructions
FORWARDED = (("bucket", ""),)


def compiled(exchange: tuple[str, str, str, str], template_option: bool, target: str) -> collc.CollectiveResult:
    network, kind, scheduler, options = exchange
    source = SPEC.format(
        network=network, kind=kind, scheduler=scheduler, options=options, template=str(template_option).lower()
    )
    return collc.compile_source(source, target=target)["grads"]


def messages_of(program: Program) -> int:
    return int(program.sends.sum())


@pytest.mark.quick
@pytest.mark.parametrize("target", ["msccl-xml", "oneccl-xml", "mscclpp-json"])
@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda e: f"{e[0]}-{e[1]}-{e[2]}-{e[3][9:12]}")
def test_passes_work_on_one_rank_of_exchanges(exchange: tuple[str, str, str, str], target: str) -> None:
    """The file has all ranks: it is read back, and all of them are executed."""
    one, every = (compiled(exchange, template_option, target) for template_option in (True, False))
    for result in (one, every):
        assert all(report.ok for report in result.reports)
    details = [[check.detail for report in result.reports for check in report.checks] for result in (one, every)]
    ranks = collc.topology(exchange[0]).num_ranks
    by_orbits = any(f"executed 1 of {ranks} ranks" in text for text in details[0])
    assert by_orbits == (target == "oneccl-xml" or exchange[2:] not in FORWARDED)
    assert not any(f"executed 1 of {ranks} ranks" in text for text in details[1])
    assert isinstance(one.program, Program) and isinstance(every.program, Program)
    assert one.program.num_ranks == every.program.num_ranks == ranks


@pytest.mark.parametrize(
    "exchange",
    [
        ("torus(16, 16)", "allreduce", "swing", "variant: bandwidth, "),
        ("hypercube(8)", "allreduce", "rabenseifner", ""),
        ("hypercube(7)", "allgather", "rabenseifner", ""), ("biring(128)", "allreduce", "bine", "variant: bandwidth, "),
        ("torus(9, 9)", "allreduce", "trivance", "variant: bandwidth, "),
        ("hypercube(6)", "allreduce", "recursive-doubling", ""),
    ],
    ids=lambda e: f"{e[0]}-{e[1]}-{e[2]}",
)  # fmt: skip
def test_exchanges_on_one_rank_need_no_more_instructions(exchange: tuple[str, str, str, str]) -> None:
    """What `docs/design-decisions.md` says: each message of an exchange stays whole."""
    one, every = (compiled(exchange, template_option, "msccl-xml").program for template_option in (True, False))
    assert isinstance(one, Program) and isinstance(every, Program)
    assert messages_of(one) <= messages_of(every)


@settings(max_examples=examples(30), deadline=None)
@given(topology=cayley_networks(), kind=st.sampled_from(KINDS), most=st.sampled_from([None, 1, 2]))
def test_messages_are_divided_if_their_parts_need_few_runs(topology: Topology, kind: str, most: int | None) -> None:
    program = template(topology, kind)
    found = divided_for_runs(program, most)
    assert verify(found).ok
    assert instructions_of(found.unfold()) == instructions_of(program.unfold())
    whole, parts = (len(one.message_start) for one in (program, divided_by_depth(program)))
    assert len(found.message_start) in (whole, parts)
    if kind != "allreduce":
        runs = [int(run_counts(one, most).sum()) for one in (program, divided_by_depth(program))]
        assert (len(found.message_start) == parts) == (4 * runs[1] <= 5 * runs[0] or whole == parts)


@pytest.mark.quick
def test_messages_of_a_torus_are_divided_and_those_of_an_exchange_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[int, int, int]]()

    def noted(program: SymmetricProgram, most: int | None = None) -> SymmetricProgram:
        found = divided_for_runs(program, most)
        seen.append(tuple(len(one.message_start) - 1 for one in (program, divided_by_depth(program), found)))  # type: ignore[arg-type]
        return found

    monkeypatch.setattr("collc.passes.program.coalesce.divided_for_runs", noted)
    compiled(("hypercube(6)", "allreduce", "rabenseifner", ""), True, "msccl-xml")
    compiled(("torus(8, 8)", "allreduce", "bfb", ""), True, "msccl-xml")
    (whole, parts, found), (_, of_torus, found_of_torus) = seen
    assert found == whole < parts
    assert found_of_torus == of_torus


@pytest.mark.quick
@pytest.mark.parametrize("target", ["msccl-xml", "mscclpp-json"])
@pytest.mark.parametrize(
    "exchange",
    [
        ("hypercube(3)", "allreduce", "recursive-doubling", ""),
        ("torus(4, 4)", "allreduce", "swing", "variant: latency, "),
        ("torus(9, 3)", "allreduce", "trivance", "variant: latency, "),
    ],
    ids=lambda e: e[2],
)
def test_whole_vectors_are_fused_on_no_rank(exchange: tuple[str, str, str, str], target: str) -> None:
    """So `fuse` needs no program of all ranks: on all ranks it fuses none either."""
    for template_option in (True, False):
        program = compiled(exchange, template_option, target).program
        assert isinstance(program, Program)
        assert not (program.sends & program.receives).any()


# ---- if the program of one rank does not fit


TIGHT = """
topology pod = dgx_h100(20);
collective c = alltoall on pod {{ size: 16 MiB }};
schedule c using {scheduler};
"""


def test_a_program_of_one_rank_over_the_limits_is_compiled_on_all_ranks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    def refused(self: LayOut, program: object) -> None:
        raise error("C0509", "it does not fit", exit_status=3, excess=Excess("steps", 65, 64))

    monkeypatch.setattr(LayOut, "_require_room", refused)
    source = tmp_path / "a.coll"
    source.write_text(TIGHT.format(scheduler="two-tier"))
    assert main(["compile", str(source), "-t", "msccl-xml", "-o", str(tmp_path / "a.xml"), "-v"]) == 0
    said = capsys.readouterr().err
    assert "passes work on all ranks, because the program of one rank exceeds limits of `msccl-xml`" in said
    assert main(["verify", str(tmp_path / "a.xml")]) == 0


def test_the_first_mistake_is_said_if_all_ranks_do_not_fit_either(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[bool]()
    run = Lower.run

    def noted(self: Lower, ir: object) -> object:
        tried.append(self.orbits)
        return run(self, ir)  # type: ignore[arg-type]

    monkeypatch.setattr(Lower, "run", noted)
    with pytest.raises(collc.CollcError) as caught:
        compiled(("torus(8, 8)", "alltoall", "flow", ""), True, "msccl-xml{threadblocks=4, channels=1}")
    assert [d.code for d in caught.value.diagnostics] == ["C0509"]
    assert "would have at least 123 steps" in str(caught.value)  # on all ranks these are 120
    assert tried[0] and not tried[-1]
