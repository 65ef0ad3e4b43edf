"""The table of docs/oneccl.md: which collectives and options of `mpi-c` the target serves. Each row is compiled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collc
from collc.backends import TARGETS
from collc.backends.mpi_c import MpiC
from collc.backends.oneccl_xml import OneCclXml
from collc.ir.collective import KINDS, UNEVEN
from collc.ir.diagnostic import CollcError
from collc.registry.options import describe

PAGE = Path(__file__).parents[3] / "docs" / "oneccl.md"
WEIGHTS = "weights: {5, 0, 1, 2}"
UNEVENLY = {
    "alltoallv": "matrix: {{(s + 2 * t) mod 3 for t in 0..4} for s in 0..4}",
    **dict.fromkeys(("gatherv", "scatterv"), f"{WEIGHTS}, root: 1"),
    **dict.fromkeys(("allgatherv", "reduce-scatterv"), WEIGHTS),
}
ROOT = dict.fromkeys(("broadcast", "reduce", "gather", "scatter"), "root: 1")
SHIFT = "collective shift { pre: 0..ranks, post: {{(r + 1) mod ranks, (r + 2) mod ranks} for r in 0..ranks} }\n"
PAIRS = "collective pairs { pre: {{0, 1}, {2, 3}}, post: {{0}, {2}} }\n"
STEPS = "schedule c using steps { at 1: reduce shard 0 from 1 to 0; at 1: reduce shard 1 from 3 to 2; }"


def cases() -> dict[str, str]:
    """Return the collectives of the table, each with its declaration on four ranks."""
    plain = [kind for kind in KINDS if kind != "custom"]
    found = {kind: f"{kind} on net {{ {ROOT[kind]} }}" if kind in ROOT else f"{kind} on net" for kind in plain}
    found |= {name: f"{name} on net {{ {UNEVENLY[name]} }}" for name in UNEVEN.values()}
    found |= {"custom": "shift on net", "custom, with sums": f"pairs on net {{ op: sum }}; {STEPS}"}
    return found | {f"{kind}, among some ranks": f"{kind} on net among {{0, 2}}" for kind in ("allgather", "allreduce")}


def served(declaration: str, target: str) -> str:
    """Return how a target serves a collective: the element of the file, `yes`, or the code of the refusal."""
    text = f"topology net = torus(4);\n{SHIFT}{PAIRS}collective c = {declaration}" + (
        ";" if declaration[-1] != "}" or "steps" not in declaration else ""
    )
    try:
        (artifact,) = collc.compile_source(text, target=target).artifacts.values()
    except CollcError as refused:
        return f"no ({refused.diagnostics[0].code})"
    written = getattr(artifact, "text", artifact)
    element = re.search(r"<oneccl[^>]*>\s*<([a-z-]+)", str(written))
    return f"`{element[1]}`" if element else "yes"


def table() -> list[str]:
    rows = [(name, served(text, "mpi-c"), served(text, "oneccl-xml")) for name, text in cases().items()]
    return [
        "| Collective | mpi-c | Element of oneccl-xml |",
        "|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def test_the_table_is_what_the_targets_do() -> None:
    assert "\n".join(table()) in PAGE.read_text(), "\n".join(table())


def test_the_page_names_every_option_of_mpi_c() -> None:
    """Options of mpi-c that the target lacks are in the page with a reason, and refused with one message."""
    lacking = {one.name for one in describe(MpiC)} - {one.name for one in describe(OneCclXml)}
    section = PAGE.read_text().split("## What is served")[1].split("\n## ")[0]
    assert {f"`{name}`" for name in lacking} <= set(re.findall(r"^\| (`[a-z-]+`) \|", section, re.MULTILINE))
    for name in lacking:
        with pytest.raises(CollcError) as refused:
            collc.compile_source("collective c = allreduce on torus(4);", target=f"oneccl-xml{{{name}=true}}")
        assert len(refused.value.diagnostics) == 1 and "oneccl-xml" in str(refused.value)
    assert "oneccl-xml" in TARGETS


@pytest.mark.parametrize(
    "options",
    ["threads=2", "lanes=1", "inplace=true", "outofplace=true", "min-bytes=8", "max-bytes=4096", "algorithm=mine"],
)
def test_every_option_is_taken_with_every_collective(options: str) -> None:
    for name, declaration in cases().items():
        if name.startswith("custom") or name in UNEVENLY:
            continue
        inplace = options == "inplace=true" and name == "alltoall"
        found = served(declaration, f"oneccl-xml{{{options}}}")
        assert found == f"`{name.partition(',')[0]}`" or inplace, (name, found)
