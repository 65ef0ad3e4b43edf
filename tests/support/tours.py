"""Running `examples/tour.ipynb`, and what of its outputs is the same everywhere."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from places import EXAMPLES

__all__ = ["NOTEBOOK", "comparable", "executed", "text_of"]

NOTEBOOK = EXAMPLES / "tour.ipynb"
#: all that a notebook that is committed says of its kernel
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path, folder: Path) -> dict[str, Any]:  # Any: JSON
    """Return a notebook with new outputs, run in a folder, without times and places of this machine."""
    import nbformat
    from nbclient import NotebookClient

    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
    notebook.metadata = nbformat.from_dict(_METADATA)
    found: dict[str, Any] = json.loads(nbformat.writes(notebook))
    return found


def text_of(notebook: dict[str, Any]) -> str:  # Any: JSON
    """Return the text of the file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def comparable(notebook: dict[str, Any]) -> list[list[dict[str, str]]]:  # Any: JSON
    """Return the outputs of every cell of code that do not depend on versions of packages.

    Pictures are only told to be there: their bytes differ from version to version of matplotlib and of fonts. So does
    the form of data frames, of which the words are compared.
    """
    return [
        [_comparable(output) for output in cell["outputs"]]
        for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]  # fmt: skip


def _comparable(output: dict[str, Any]) -> dict[str, str]:  # Any: JSON
    if output["output_type"] == "stream":
        return {output["name"]: "".join(output["text"])}
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items()}
    if "image/png" in data:
        data = {"image/png": "a picture"} if data["image/png"].startswith("iVBOR") else {"image/png": "no picture"}
    if 'class="dataframe"' in data.get("text/html", ""):
        data = {"data frame": " ".join(data["text/plain"].replace("\\", " ").split())}
    return data or {"error": str(output.get("evalue"))}
