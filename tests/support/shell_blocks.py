"""The commands of collc in blocks of shell, and the lines that a remark on the line before the block leaves out.

``<!-- not run: REASON -->`` leaves out the whole block, ``<!-- not run, `WORDS`: REASON -->`` its lines that contain
one of the quoted words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transcripts import Block

__all__ = ["commands", "left_out", "lines", "reason"]

_REMARK = re.compile(r"not run(?:, (`[^`]+`(?:, `[^`]+`)*))?: (\S.*)")
#: a command at the beginning of a line, after `&&` or in `$(..)`, up to what the shell does with it
_COMMAND = re.compile(
    r"(?:^|(?<=\$\()|(?<=&& ))(?:\.venv/bin/)?(collc (?:'[^']*'|\"[^\"]*\"|[^'\"#;|&<>)]|(?<=\S)#|<(?=\S))*)"
)


def reason(block: Block) -> str:
    """Return why the block or some of its lines are not run; nothing if all are."""
    match = _REMARK.fullmatch(block.remark)
    return match[2] if match else ""


def lines(block: Block) -> list[str]:
    """Return the lines of a shell, continued ones as one."""
    return [line.strip() for line in block.body.replace("\\\n", " ").splitlines() if line.strip()]


def left_out(block: Block) -> list[str]:
    """Return the lines that are not run."""
    match = _REMARK.fullmatch(block.remark)
    words = re.findall(r"`([^`]+)`", match[1] or "") if match else []
    return [line for line in lines(block) if not block.is_run or any(word in line for word in words)]


def commands(block: Block) -> Iterator[str]:
    """Yield the commands of collc that are run."""
    skipped = left_out(block)
    for line in lines(block):
        if line not in skipped:
            yield from (command.strip() for command in _COMMAND.findall(line))
