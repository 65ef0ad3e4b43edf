"""The cost of a collective, by a process of its own that ends within a time limit: schedules may take minutes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence

__all__ = ["SECONDS", "cost_text"]

#: The longest that an editor waits for a cost.
SECONDS = 5.0


async def cost_text(
    text: str, folder: str, collective: str, options: Sequence[str] = (), seconds: float = SECONDS
) -> str:
    """Return what ``collc cost`` prints of one collective of a text, or why there is nothing, as Markdown.

    ``folder`` is where included files are looked for. ``options`` are those of the command line. If the caller is
    cancelled, the process ends.
    """
    # -P: no module beside the user's file replaces one of Python's or collc's.
    command = [sys.executable, "-P", "-m", "collc", "cost", "-", "--collective", collective, "-w", *options]
    process = await asyncio.create_subprocess_exec(
        *command, "--color=never", cwd=folder,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(text.encode()), seconds)
    except TimeoutError:
        return f"The cost takes more than {seconds:g} s. `collc cost --collective {collective}` prints it."
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode == 0:
        return f"```text\n{out.decode().rstrip()}\n```"
    return f"No cost: {_first_line(err.decode(errors='replace'))}"


def _first_line(message: str) -> str:
    """Return the message of a diagnostic without its place."""
    return (message.splitlines() or ["collc cost failed"])[0].partition("error: ")[2] or "collc cost failed"
