"""Every JSON object of the command against its schema, and faults that the schemas refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from sampling import every

from collc.tables.schemas import DOCUMENTS, schema
from collc.tools.schemas import schema_text
from tests.support.places import CASES, ROOT

SHIPPED = ROOT / "collc" / "share" / "schemas"


def strict(found: Any) -> Any:  # Any: JSON
    """A schema that allows no other keys, so that a key without a description is found."""
    if isinstance(found, dict):
        closed = {key: strict(value) for key, value in found.items()}
        return {**closed, "additionalProperties": False} if closed.get("type") == "object" else closed
    return [strict(one) for one in found] if isinstance(found, list) else found


def require(name: str, text: str) -> dict[str, Any]:
    """Return the object of a text; fail unless it is as the schema says."""
    found: dict[str, Any] = json.loads(text)
    Draft202012Validator(strict(schema(name))).validate(found)
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_schemas_and_shipped(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert (SHIPPED / f"{name}.json").read_text() == schema_text(name), (
        "`python -m collc.tools.schemas collc/share/schemas`"
    )


def test_nothing_else_is_shipped() -> None:
    assert {path.stem for path in SHIPPED.iterdir()} == set(DOCUMENTS)


# ---- the goldens


def printed() -> Iterator[tuple[Path, str, str]]:
    """The cases with JSON on standard output: the file, the verb, and what was printed."""
    for path in sorted(CASES.rglob("*.expect")):
        _, _, rest = path.read_text().partition("--- stdout\n")
        text = rest.partition("--- stderr")[0]
        if text.startswith("{\n"):
            source = next(p for p in path.parent.glob(f"{path.stem}.*") if p.suffix != ".expect")
            (line,) = [line for line in source.read_text().splitlines() if "RUN:" in line][:1]
            words = line.partition("RUN:")[2].split()
            if words[0].startswith("-"):  # compiles, and prints a plan
                continue
            yield path, next(word for word in words if not word.startswith("-")), text


PRINTED = list(printed())


@pytest.mark.parametrize(("path", "verb", "text"), PRINTED, ids=[path.stem for path, _, _ in PRINTED])
def test_what_the_cases_print(path: Path, verb: str, text: str) -> None:
    documents = {"convert": "compile", **dict.fromkeys(("targets", "passes", "schedulers", "formats"), "listing")}
    require(documents.get(verb, verb), text)


# ---- what the command prints now

TEXTS = {
    "one": "topology t = torus(3, 3);\ncollective c = allreduce on t { size: 1 MiB };\n",
    "two": "topology t = dgx_a100(2);\ncollective c = allgather on t { size: 1 MiB };\ncollective d = allreduce on t;\n"
    "schedule d using forest;\n",
    "alltoall": "topology t = mesh(3, 3);\ncollective c = alltoall on t;\nschedule c using flow;\n",
    "rounded": "topology t = torus(3, 3);\ncollective c = allgather on t;\nschedule c using bfb { chunks: 3 };\n",
    "range": "topology t = torus(2, 4);\ncollective c = allreduce on t;\n"
    "schedule c using auto { sizes: 1 KiB..1 GiB };\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "text"), every(2, list(product(["cost", "simulate", "verify", "check", "compile"], TEXTS)))
)
def test_what_verbs_print(collc: Any, verb: str, text: str, tmp_path: Path) -> None:  # Any: the fixture's function
    path = tmp_path / "a.coll"
    path.write_text(TEXTS[text])
    more = ["-o", f"{tmp_path}/out/", "-t", "mpi-c", "--print-pipeline"] if verb == "compile" else []
    ran = collc(verb, str(path), *more, "--json")
    assert ran.status == 0, ran.err
    found = require(verb, ran.out)
    if text == "two" and verb in ("cost", "simulate"):
        assert [one["name"] for one in found["collectives"]] == ["c", "d"] and "name" not in found


RIGHT = "collective a = allreduce on torus(3, 3) { size: 1 MiB };\n"
WRONG = "collective b = alltoall on torus(3, 3);\nschedule b using swing;\n"


@pytest.mark.parametrize("text", [RIGHT + WRONG, WRONG], ids=["one of two", "the only one"])
@pytest.mark.parametrize("verb", ["cost", "simulate", "verify", "compile", "check"])
def test_what_verbs_print_of_collectives_that_fail(
    collc: Any, verb: str, text: str, tmp_path: Path
) -> None:  # Any: as above
    path = tmp_path / "a.coll"
    path.write_text(text)
    more = ["-o", f"{tmp_path}/out/", "-t", "mpi-c"] if verb == "compile" else []
    ran = collc(verb, str(path), *more, "--json")
    assert ran.status
    found = require(verb, ran.out)
    assert ["b"] == [one["name"] for one in found.get("failed", ())] or (verb == "check" and found["diagnostics"])


@pytest.mark.parametrize("verb", ["verify", "compile", "check"])
@pytest.mark.parametrize("more", ["", "collective", WRONG], ids=["right", "unreadable", "wrong"])
def test_what_verbs_print_of_several_files(collc: Any, verb: str, more: str, tmp_path: Path) -> None:  # Any: as above
    for name, text in {"a": RIGHT, "c": RIGHT.replace("collective a", "collective c") + more}.items():
        (tmp_path / f"{name}.coll").write_text(text)
    to = ["-o", f"{tmp_path}/out/", "-t", "mpi-c"] if verb == "compile" else []
    ran = collc(verb, f"{tmp_path}/a.coll", f"{tmp_path}/c.coll", *to, "--json")
    assert bool(ran.status) == bool(more)
    if ran.out:
        require(verb, ran.out)
    else:
        assert more == "collective" and verb != "check"


def test_what_calibrate_prints(collc: Any, tmp_path: Path) -> None:  # Any: as above
    path = tmp_path / "times.csv"
    path.write_text("bytes,seconds,steps,load\n1024,4e-5,4,2\n1048576,2.3e-4,4,2\n16777216,3e-3,4,2\n")
    require("calibrate", collc("calibrate", str(path), "--json").out)


def test_what_baselines_print(collc: Any, tmp_path: Path) -> None:  # Any: as above
    path = tmp_path / "a.coll"
    path.write_text(TEXTS["two"])
    for one in require("cost", collc("cost", str(path), "--baselines", "--json").out)["collectives"]:
        assert one["baselines"]["points"][0]["baselines"]


def test_what_find_prints(collc: Any) -> None:  # Any: as above
    for words in (
        "-n 32 -d 4", "-n 33 -d 4 --bidirectional", "-n 32 -d 4 --objective alltoall",
        "-n 16 -d 4 --size 1KiB..1MiB:32", "-n 16 -d 4 --workload gpt2-xl",
    ):  # fmt: skip
        require("find", collc("find", *words.split(), "--json").out)


def test_what_train_prints(collc: Any) -> None:  # Any: as above
    for words in (["gpt2-xl", "--on", "torus(4, 4)", "dgx_h100(2)"], ["--list"]):
        require("train", collc("train", *words, "--json").out)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["passes"], "listing"), (["schedulers"], "listing"), (["targets"], "listing"), (["formats"], "listing"),
        (["topologies"], "listing"), (["topologies", "cayley"], "listing"), (["explain"], "listing"),
        (["topologies", "distance_regular"], "listing"), (["schema"], "listing"), (["passes", "bfb"], "entry"),
        (["schedulers", "auto"], "entry"), (["targets", "mpi-c"], "entry"), (["formats", "coll"], "entry"),
        (["explain", "C0301"], "entry"), (["cache"], "cache"),
    ],
)  # fmt: skip
def test_what_listings_print(collc: Any, words: list[str], name: str) -> None:  # Any: as above
    require(name, collc(*words, "--json").out)


def test_schema_prints_the_shipped_file(collc: Any) -> None:  # Any: as above
    for name in DOCUMENTS:
        assert collc("schema", name).out == (SHIPPED / f"{name}.json").read_text()
    ran = collc("schema", "costs")
    assert ran.status == 2 and "did you mean `cost`?" in ran.err


# ---- planted faults


def faults(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The object without a key, with a wrong type, with another version, with a key that nobody knows."""
    for key in found:
        less = deepcopy(found)
        del less[key]
        yield f"without {key}", less
        yield f"{key} of another type", {**found, key: {"other": 1}}
    yield "another version", {**found, "schema": 2}
    yield "an unknown key", {**found, "unknown": 1}
    yield "a fraction as a float", {**found, "T_B": 0.5}
    yield "a row without its size", {**found, "points": [{"time_us": 1.0}]}


OVERHEADS = {f"{name}{end}" for name in ("T_C", "gamma", "epsilon") for end in ("", "_float")}
OPTIONAL = {"name", "assumed", "auto", "remarks", "moore_optimal", *OVERHEADS}


def test_planted_faults_are_refused(collc: Any, tmp_path: Path) -> None:  # Any: as above
    path = tmp_path / "a.coll"
    path.write_text(TEXTS["one"])
    found = require("cost", collc("cost", str(path), "--json").out)
    validator = Draft202012Validator(strict(schema("cost")))
    count = 0
    for what, wrong in faults(found):
        if what.removeprefix("without ") in OPTIONAL:
            continue
        with pytest.raises(ValidationError):
            validator.validate(wrong)
            pytest.fail(f"{what} is not refused")
        count += 1
    assert count > 40
