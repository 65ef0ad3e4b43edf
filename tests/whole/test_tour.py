"""The notebook of the examples: it runs, prints what is committed, and holds nothing of the machine that ran it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tours import NOTEBOOK, comparable, executed, text_of

COMMITTED: dict[str, Any] = json.loads(NOTEBOOK.read_text())  # Any: JSON

#: what would differ from machine to machine, or from run to run
_FOREIGN = re.compile(r"/(home|root|work|tmp|usr|Users)/|site-packages|\d{4}-\d\d-\d\dT|0x[0-9a-f]{6,}|iopub|shell\.")


def texts(notebook: dict[str, Any]) -> str:  # Any: JSON
    """The notebook without the bytes of its pictures."""
    stripped = copy.deepcopy(notebook)
    for cell in stripped["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    return json.dumps(stripped)


def flaws(notebook: dict[str, Any]) -> list[str]:  # Any: JSON
    """What of a notebook is not clean."""
    found = [f"foreign: {hit.group()}" for hit in _FOREIGN.finditer(texts(notebook))]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found += [f"counts: {[c['execution_count'] for c in code]}"] * (
        [c["execution_count"] for c in code] != list(range(1, len(code) + 1))
    )
    found += [f"metadata of {cell['id']}" for cell in notebook["cells"] if cell["metadata"]]
    found += [f"error in {c['id']}" for c in code for o in c["outputs"] if o["output_type"] == "error"]
    found += [f"standard error in {c['id']}" for c in code for o in c["outputs"] if o.get("name") == "stderr"]
    found += ["metadata"] * (set(notebook["metadata"]) != {"kernelspec", "language_info"})
    found += ["language"] * (notebook["metadata"].get("language_info") != {"name": "python"})
    return found


def test_the_file_is_clean_and_valid() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.from_dict(COMMITTED))
    assert [] == flaws(COMMITTED)
    assert NOTEBOOK.read_text() == text_of(COMMITTED)
    assert len(NOTEBOOK.read_bytes()) < 1 << 20


def planted() -> list[dict[str, Any]]:  # Any: JSON
    """The notebook with one thing each that must not be in it."""
    found = [copy.deepcopy(COMMITTED) for _ in range(6)]
    code = [[c for c in one["cells"] if c["cell_type"] == "code"] for one in found]
    stream = {"output_type": "stream", "name": "stdout", "text": ["/home/me/pod.coll\n"]}
    code[0][0]["outputs"].append(stream)
    code[1][0]["execution_count"] = 7
    code[2][0]["metadata"] = {"execution": {"iopub.execute_input": "2025-01-01T00:00:00"}}
    code[3][0]["outputs"].append({"output_type": "error", "ename": "a", "evalue": "b", "traceback": []})
    code[4][0]["outputs"].append({**stream, "name": "stderr", "text": ["warning"]})
    found[5]["metadata"]["language_info"] = {"name": "python", "version": "3.11.7"}
    return found


@pytest.mark.parametrize("place", range(6))
def test_planted_flaws_are_found(place: int) -> None:
    assert flaws(planted()[place])


def test_a_number_that_changed_is_found() -> None:
    other = copy.deepcopy(COMMITTED)
    outputs = next(cell["outputs"] for cell in other["cells"] if cell.get("outputs"))
    outputs[0]["data"]["text/plain"] = ["Result(grads: allreduce on pod, 16 ranks, bfb, T_L 7, T_B 15/8)"]
    assert comparable(COMMITTED) == comparable(copy.deepcopy(COMMITTED)) != comparable(other)


def test_every_picture_and_table_is_there() -> None:
    shown = [output for cell in comparable(COMMITTED) for output in cell]
    assert [] == [cell for cell in comparable(COMMITTED) if not cell]
    assert sum(output.get("image/png") == "a picture" for output in shown) >= 5
    assert sum("<table" in output.get("text/html", "") for output in shown) >= 5


@pytest.mark.slow
def test_it_prints_what_is_committed(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    for package in ("nbclient", "ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'collc[notebook]' nbclient")
    found = executed(NOTEBOOK, tmp_path)
    if pytestconfig.getoption("--update-golden"):
        NOTEBOOK.write_text(text_of(found))
        return
    assert comparable(COMMITTED) == comparable(found)
    assert [] == flaws(found)
