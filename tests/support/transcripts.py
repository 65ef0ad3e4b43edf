"""Pages whose blocks are a story: files to write and commands to run, in order, in one folder.

* A block whose first line is a comment with a file's name (``# pod.coll``, ``/* app.c */``) is that file.
* In a ``console`` block a line ``$ COMMAND`` is run, and the lines below it are what it prints: standard output, then
  standard error. A line ``...`` stands for any lines.
* A comment on the line before a block changes that: ``<!-- not run: REASON -->``, or
  ``<!-- output varies: REASON -->``, which compares the words but no numbers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

__all__ = ["Block", "blocks", "matches", "play", "replayed"]

_BLOCK = re.compile(r"^(?:<!-- ([^\n]*?) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|//|/\*) ([\w/-]+(?:\.\w+)+)(?: \*/)?\n")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
#: of an output whose units may change with its numbers
_UNIT = re.compile(r"\b(us|ms|s|B|KiB|MiB|MB|GB/s)\b")
ANY_LINES = "..."


@attrs.frozen
class Block:
    """A block of code of a page, with the remark on the line before it."""

    language: str
    body: str
    remark: str = ""

    @property
    def is_run(self) -> bool:
        return not self.remark.startswith("not run: ")

    @property
    def varies(self) -> bool:
        return self.remark.startswith("output varies: ")

    @property
    def file(self) -> str:
        """The name of the file that the block is, or nothing."""
        match = _FILE.match(self.body)
        return match[1] if match and self.language != "console" else ""


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in order."""
    return [Block(language, body, remark or "") for remark, language, body in _BLOCK.findall(page)]


def play(block: Block, folder: Path) -> Block:
    """Write the block's file, or run its commands; return it with what they print."""
    if block.is_run and block.file:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.resolve().is_relative_to(folder.resolve()):  # others belong to the repository: the page only shows them
            path.write_text(block.body)
    if not block.is_run or block.language != "console":
        return block
    return attrs.evolve(block, body="".join(_run(block.body, folder)))


def _run(body: str, folder: Path) -> Iterator[str]:
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "home" / "cache"), "COLUMNS": "120",
    }  # fmt: skip
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)\n", body, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        yield f"$ {command}\n"
        yield (done.stdout + done.stderr).replace(f"{folder}/", "").rstrip("\n") + "\n" * bool(
            done.stdout + done.stderr
        )


def matches(block: Block, printed: Block) -> bool:
    """Return whether a block shows what its commands print."""
    shown, found = _lines(block), _lines(printed)
    place = 0
    for i, part in enumerate(_parts(shown)):
        at = next((k for k in range(place, len(found) + 1) if found[k : k + len(part)] == part), None)
        if at is None or (i == 0 and at != 0):
            return False
        place = at + len(part)
    return place == len(found) or shown[-1:] == [ANY_LINES]


def _lines(block: Block) -> list[str]:
    lines = [line.rstrip() for line in block.body.splitlines()]
    if not block.varies:
        return lines
    return [" ".join(_UNIT.sub("u", _NUMBER.sub("#", line)).replace(" - ", " # ").split()) for line in lines]


def _parts(lines: list[str]) -> list[list[str]]:
    """Return the lines between those that stand for any lines."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line == ANY_LINES:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def replayed(page: str, folder: Path) -> str:
    """Return a page with what its commands print today; blocks with ``...`` stay as they are."""

    def anew(match: re.Match[str]) -> str:
        block = Block(match[2], match[3], match[1] or "")
        printed = play(block, folder)
        kept = f"{ANY_LINES}\n" in block.body or (block.varies and matches(block, printed))
        return match[0] if kept else match[0].replace(block.body, printed.body)

    return _BLOCK.sub(anew, page)
