"""The example plugin, and plugins with faults, installed by pip into folders of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from places import ROOT

EXAMPLE = ROOT / "examples" / "plugin"


def example_files() -> dict[str, str]:
    """Return the files of the example's package."""
    return {f"collc_example/{path.name}": path.read_text() for path in sorted((EXAMPLE / "collc_example").glob("*.py"))}


def example_points() -> dict[str, str]:
    """Return the entry points that the example's pyproject.toml names."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    points: dict[str, str] = project["entry-points"]["collc.plugins"]
    return points


def wheel(folder: Path, name: str, files: dict[str, str], points: dict[str, str]) -> Path:
    """Write a wheel of some files with entry points in the group of plugins, which needs nothing that builds wheels."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    listed = "".join(f"{point} = {value}\n" for point, value in points.items())
    whole = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[collc.plugins]\n{listed}",
    }
    whole[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*whole, f"{info}/RECORD"])
    path = folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in whole.items():
            archive.writestr(place, text)
    return path


def can_build() -> bool:
    """Return whether this Python's setuptools makes wheels: from 70.1 on by itself, before with the package wheel."""
    found = importlib.util.find_spec
    return bool(found("setuptools") and (found("wheel") or found("setuptools.command.bdist_wheel")))


def installed(folder: Path, *wheels: Path) -> Path:
    """Install wheels into a folder, which is to stand on the path of Python."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-compile", "--target", str(folder), *map(str, wheels)]
    subprocess.run(command, check=True, timeout=120)
    return folder
