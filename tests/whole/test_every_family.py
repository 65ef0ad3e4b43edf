"""Every collective compiles on every graph family, in several sizes, for every target, or a known limit refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import attrs
import pytest
from every_family import EXPRESSIONS, TARGETS, texts, topologies
from sampling import every

import collc
from collc.backends import TARGETS as KNOWN_TARGETS
from collc.backends.msccl_xml.target import MscclXml
from collc.frontends.coll.families import FAMILIES, OPERATORS
from collc.ir.diagnostic import CollcError
from collc.passes.program import coalesce_packing

#: topology, collective, root, size, text, target
Job = tuple[str, str, int | None, str | None, str, str]

#: networks without a cycle through all ranks, or with a box that no ring can pass from NIC to NIC
RINGLESS = (
    "generalized_kautz(2, 5)", "generalized_kautz(2, 7)", "generalized_kautz(2, 17)", "mesh(3)", "mesh(3, 3)",
    "double_binary_tree(6)", "cayley(alternating(4), {1, 3})", "dragonfly(2, 2, 1)", "jellyfish(5, 2, 1, 2)",
    "degree(mesh(3), 2)", "transpose(generalized_kautz(2, 5))", "without(dgx_a100(2), {gpu[1, 2] <-> nv[1]})",
    "clustered(diamond(), 2, 1)",
)  # fmt: skip

#: code, why it is the user's to know, and where it may appear
REFUSALS: tuple[tuple[str, str, Callable[[Job], bool]], ...] = (
    (
        "C0607", "MSCCL's runtimes have no call for a gather or scatter that a file could serve",
        lambda job: job[1] in ("gather", "scatter") and job[5].startswith("msccl-xml"),
    ),
    (
        "C0910", "NCCL has no rings for these collectives",
        lambda job: job[5] == "nccl-graph" and job[1] in ("alltoall", "gather", "scatter"),
    ),
    ("C0588", "no ring passes all ranks of these networks", lambda job: job[5] == "nccl-graph" and job[0] in RINGLESS),
)  # fmt: skip


def jobs() -> list[Job]:
    return [(*text, target) for text in texts() for target in TARGETS]


def verdict(job: Job) -> str:
    """Return ``ok``, or what went wrong; a refusal for a known reason is right."""
    try:
        made = collc.compile_source(job[4], target=job[5]).collectives["c"]
    except CollcError as mistake:
        codes = {d.code for d in mistake.diagnostics if d.severity.value == "error"}
        known = {code for code, _, applies in REFUSALS if applies(job)}
        return "ok" if codes and codes <= known else f"{sorted(codes)}: {mistake}"
    return "ok" if all(report.ok for report in made.reports) else f"not verified: {made.reports}"


@pytest.mark.slow
@pytest.mark.parametrize("job", every(719, jobs(), 714), ids=lambda job: " ".join(str(x) for x in (*job[:4], job[5])))
def test_it_compiles_or_is_refused(job: Job) -> None:
    assert verdict(job) == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("expression", every(5, [name for name, _ in topologies()]))
@pytest.mark.parametrize("kind", ["allreduce", "allgather"])
def test_choices_among_the_algorithms_of_nccl(kind: str, expression: str) -> None:
    """A table, or a reason: one algorithm, no model of one, a number of machines that the network does not show."""
    ranks = collc.topology(expression).num_ranks
    text = f"collective c = {kind} on {expression};"
    for options in ("", f"{{nodes={ranks}}}", "{nodes=1,nvls=true}"):
        try:
            made = collc.compile_source(text, target=f"nccl-tuner{options}").collectives["c"]
        except CollcError as mistake:
            assert {d.code for d in mistake.diagnostics} <= {"C0770", "C0771", "C0772", "C0775"}, mistake
        else:
            assert all(report.ok for report in made.reports)


def test_an_internal_error_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """With waits forgotten in `coalesce`, what reads scratch too early is found."""
    text = "topology t = diamond(); collective c = alltoall on t { size: 1 MiB }; schedule c using flow;"
    job: Job = ("diamond()", "alltoall", None, "1 MiB", text, "mpi-c")
    assert verdict(job) == "ok"
    monkeypatch.setattr(coalesce_packing, "with_all_dependencies", lambda program: program)
    assert "C0070" in verdict(job)


def test_a_known_code_elsewhere_is_no_refusal() -> None:
    text = "topology t = diamond(); collective c = gather on t { root: 0 };"
    job: Job = ("diamond()", "gather", 0, None, text, "msccl-xml")
    assert verdict(job) == "ok"
    assert "C0607" in verdict((*job[:1], "allgather", *job[2:]))


def test_nothing_is_left_out() -> None:
    assert set(EXPRESSIONS) == {*FAMILIES, *OPERATORS}
    for name, calls in EXPRESSIONS.items():
        assert calls and all(call.startswith(f"{name}(") for call in calls)
    small, all_ = list(topologies()), list(topologies(10**6))
    assert len(small) == len({expression for expression, _ in small})
    assert [expression for expression, _ in all_ if (expression, _) not in small] == [
        "gb200_nvl72(1)"
    ]  # no smaller rack
    assert all(collc.topology(expression).is_connected for expression, _ in topologies())
    direct = {name for name in KNOWN_TARGETS if KNOWN_TARGETS.load(name).level in ("problem", "tuning", "account")}
    assert {target.partition("{")[0] for target in TARGETS} == set(KNOWN_TARGETS) - direct
    runtimes = get_args(attrs.fields_dict(MscclXml)["runtime"].type)
    assert {f"msccl-xml{{runtime={r}}}" for r in runtimes} < set(TARGETS)
