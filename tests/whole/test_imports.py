"""Which room may import which: data flows one way, and nothing heavy loads before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from import_lines import imports
from places import ROOT

#: room -> the packages of ours that it may import by their absolute names
ALLOWED = {
    "ir": (),
    "frontends": ("collc.ir",),
    "passes": ("collc.ir",),
    "backends": ("collc.ir",),
    "collc": ("collc",),
}
MODULES = [
    (room, path) for room in ALLOWED for path in sorted((ROOT / room).rglob("*.py")) if "__pycache__" not in path.parts
]


def violations(room: str, place: Path, source: str) -> list[str]:
    """Return what a module of ``room`` at ``place`` (relative to the room) imports against the rules."""
    own = () if room == "collc" else (f"collc.{room}",)
    allowed = (*ALLOWED[room], *own)
    found = []
    for line, level, name in imports(ast.parse(source)):
        depth = len(place.parts) - 1  # packages between the room and the module
        if level > depth + 1:
            found.append(f"line {line}: relative import of `{name}` leaves the room")
        top = name.split(".")[0]
        if level == 0 and top in ("ir", "passes", "backends", "frontends"):
            found.append(f"line {line}: `{name}` is `collc.{name}`")
        if level == 0 and top == "collc" and not any(name == a or name.startswith(f"{a}.") for a in allowed):
            found.append(f"line {line}: {room} may not import `{name}`")
    return found


def test_rooms_import_only_what_they_may() -> None:
    found = {
        str(path.relative_to(ROOT)): violations(room, path.relative_to(ROOT / room), path.read_text())
        for room, path in MODULES
    }
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


def test_there_are_modules_in_every_room() -> None:
    assert set(ALLOWED) == {room for room, _ in MODULES}


@pytest.mark.parametrize(
    ("room", "place", "source"),
    [
        ("ir", "cost.py", "from collc.passes.base import Pass"),
        ("ir", "cost.py", "import collc.frontends"),
        ("ir", "verify/program.py", "def f():\n    from collc import backends"),
        ("ir", "cost.py", "from .. import passes"),
        ("ir", "verify/program.py", "from ...passes import base"),
        ("passes", "lower.py", "from collc.backends.base import Limits"),
        ("passes", "synthesis/bfb.py", "from collc.frontends.coll import load"),
        ("passes", "lower.py", "import passes.base"),
        ("backends", "mpi_c/emit.py", "from collc.passes import PASSES"),
        ("backends", "mpi_c/emit.py", "if True:\n    from collc import api"),
        ("frontends", "coll/load.py", "from collc.driver.result import Settings"),
        ("frontends", "coll/load.py", "from ...ir import spec"),
    ],
)
def test_a_planted_violation_is_found(room: str, place: str, source: str) -> None:
    assert violations(room, Path(place), source)


@pytest.mark.parametrize(
    ("room", "place", "source"),
    [
        ("ir", "verify/program.py", "from ..diagnostic import error"),
        ("passes", "synthesis/bfb.py", "from ..base import Pass\nfrom collc.ir.schedule import Schedule"),
        ("collc", "driver/runner.py", "from collc.backends.base import Target\nfrom .options import build"),
        ("backends", "mpi_c/emit.py", "from collc.backends.base import Target"),
    ],
)
def test_what_is_allowed_is_not_reported(room: str, place: str, source: str) -> None:
    assert violations(room, Path(place), source) == []


#: the packages of `passes` that know how schedules are made
SYNTHESIZING = ("synthesis", "expansion", "finder")


def synthesis_imports(place: Path, source: str) -> list[str]:
    """Return what a module of `passes` imports of synthesis, or of what rests on it, by whatever name."""
    package = ("collc", "passes", *place.parent.parts)
    found = []
    for line, level, name in imports(ast.parse(source)):
        whole = ".".join((*package[: len(package) - level + 1], name)) if level else name
        if any(f"{whole}.".startswith(f"collc.passes.{room}.") for room in SYNTHESIZING):
            found.append(f"line {line}: `{whole}`")
    return found


def test_passes_know_no_scheduler() -> None:
    """What a pass needs of the scheduler it is handed; there are no exceptions."""
    places = {path.relative_to(ROOT / room): path for room, path in MODULES if room == "passes"}
    found = {
        str(place): synthesis_imports(place, path.read_text())
        for place, path in places.items()
        if place.parts[0] not in SYNTHESIZING
    }
    assert len(found) > 30
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("discretize.py", "def f():\n    from .synthesis.bfb import BFB"), ("lower.py", "from . import synthesis"),
        ("schedule/discretize.py", "from ..synthesis.flow.scheduler import Flow"),
        ("lower.py", "import collc.passes.finder.search"), ("lower.py", "from .expansion import expansion"),
    ],
)  # fmt: skip
def test_a_planted_scheduler_is_found(place: str, source: str) -> None:
    assert synthesis_imports(Path(place), source)


# ---- what is loaded when


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that one run of the command loads in a fresh interpreter."""
    program = (
        "import sys\nfrom collc.cli import main\n"
        f"status = main({list(arguments)!r})\n"
        "print('\\n' + ' '.join(sys.modules), file=sys.stderr)\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.splitlines()[-1].split())


HEAVY = {"numpy", "lark", "lxml", "networkx", "highspy", "scipy"}


def test_version_loads_nothing_but_the_entry_point() -> None:
    loaded = loaded_by("--version")
    assert {"collc", "collc.cli"} == {name for name in loaded if name.split(".")[0] == "collc"}
    assert not loaded & (HEAVY | {"attrs", "attr", "argparse", "inspect", "typing", "difflib"})


@pytest.mark.parametrize(
    "arguments",
    [["targets"], ["passes"], ["schedulers"], ["topologies"], ["--help"], ["compile", "--help"]],
)
def test_listing_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded_by(*arguments) & HEAVY


def test_importing_the_package_loads_nothing() -> None:
    program = "import sys, collc; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not set(done.stdout.split()) & (HEAVY | {"attrs", "attr"})


def test_the_rooms_are_found_from_the_top_of_a_source_tree() -> None:
    """There the folder `collc` hides the installed package; without the editable finder its rooms stand beside it."""
    lines = (
        "import sys",
        "sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in repr(finder)]",
        "import collc.ir.topology, collc.frontends.coll",
        "print(collc.ir.topology.__file__)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(lines)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(ROOT / "ir" / "topology.py")


def test_a_wheel_has_every_package() -> None:
    """pyproject.toml lists the packages, since their folders do not have their names."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    rooms = [ROOT / name for name in ("collc", "ir", "passes", "backends", "frontends")]
    places = [path.parent.relative_to(ROOT) for room in rooms for path in room.rglob("__init__.py")]
    names = [".".join(place.parts if place.parts[0] == "collc" else ("collc", *place.parts)) for place in places]
    assert sorted(listed) == sorted(names)
