"""The oneCCL that tests run on, in a folder of its own, and the executor built with it, once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from places import CACHE

from collc.backends import oneccl_xml
from collc.backends.oneccl_xml.toolchain import OneCcl, build, find
from collc.ir.diagnostic import CollcError

__all__ = ["executor", "oneccl"]

PACKAGES = ("oneccl-devel==2022.1.2", "tcmlib==1.6.0", "mpich==5.0.2")
PREFIX = CACHE / "oneccl-2022.1.2"
STRICT = ("-O1", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="session")
def oneccl() -> OneCcl:
    """oneCCL from its wheel, with the two that it links and loads; its other 460 MB are for devices."""
    if not PREFIX.exists():
        _install()
    try:
        return find(PREFIX)
    except CollcError as reason:
        pytest.skip(f"no oneCCL: {reason}")


def _install() -> None:
    """Install into a folder aside and move it in place: tests of another process may want it at the same time."""
    CACHE.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=CACHE))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    try:
        done = subprocess.run(
            [*command, "--ignore-installed", "--no-warn-script-location", "--prefix", str(aside), *PACKAGES],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()
            pytest.skip(
                f"no oneCCL: {' '.join(PACKAGES)} cannot be installed: {reason[-1] if reason else 'pip failed'}"
            )
        with contextlib.suppress(OSError):  # another process was faster
            os.rename(aside, PREFIX)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@pytest.fixture(scope="session")
def executor(oneccl: OneCcl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executor; kept beside the library until a source changes, since building it takes longer than running it."""
    folder = Path(oneccl_xml.__file__).parent
    sources = [*sorted((folder / "executor").iterdir()), folder / "toolchain.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources) + " ".join(STRICT).encode()).hexdigest()
    kept = PREFIX / f"collc-oneccl-{digest[:16]}"
    if not kept.exists():
        try:
            built = build(oneccl, tmp_path_factory.mktemp("oneccl"), STRICT)
        except CollcError as reason:
            if "no C++ compiler" in str(reason):
                pytest.skip(str(reason))
            raise
        for old in PREFIX.glob("collc-oneccl-*"):
            old.unlink(missing_ok=True)
        aside = kept.with_suffix(f".{os.getpid()}")
        shutil.copy2(built, aside)
        os.replace(aside, kept)
    return kept
