"""oneCCL-XML -> a checked and timed run on this machine's oneCCL, one process for each rank."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import attrs

from collc.ir.diagnostic import error

from .toolchain import OneCcl, built, find
from .verify import load

__all__ = ["Row", "execute", "run"]

_GRACE_SECONDS = 15.0
_SHOWN_LINES = 8


@attrs.frozen
class Row:
    """One case of the file ``name``; ``exact`` says whether every element was correct.

    ``micros`` is the median over its calls of the slowest rank's time (microseconds), ``times`` are all (seconds), and
    ``builtin_times`` those of oneCCL's own collective, if it exists and ``compare`` was set.
    """

    name: str
    dtype: str
    op: str
    inplace: bool
    count: int
    micros: float
    exact: bool
    times: tuple[float, ...] = ()
    builtin_times: tuple[float, ...] = ()


def run(
    text: str,
    *,
    counts: Iterable[int] = (1000,),
    dtypes: Iterable[str] = ("float32",),
    ops: Iterable[str] | None = None,
    in_place: Iterable[bool] | None = None,
    repeats: int = 1,
    warmup: int = 0,
    compare: bool = False,
    oneccl: str | os.PathLike[str] | OneCcl | None = None,
    timeout: float = 120.0,
) -> list[Row]:
    """Build the executor, run the text of a file, and check every element on every rank.

    ``counts`` are those of oneCCL's own calls. The default operation is a sum, and the default places are those of the
    file. The run times ``repeats`` calls of each case after ``warmup`` others. ``compare`` also times oneCCL's own
    collective, alternating. The file is verified first. Raises what :func:`.verify.load` and :func:`execute` raise, and
    C0760 and C0761 if there is no oneCCL or no executor.
    """
    load(text)
    found = oneccl if isinstance(oneccl, OneCcl) else find(oneccl)
    with tempfile.TemporaryDirectory(prefix="collc-oneccl-") as name:
        folder = Path(name)
        file = folder / "algorithm.xml"
        file.write_text(text, encoding="utf-8")
        return execute(
            built(found), [file], counts=counts, dtypes=dtypes, ops=ops, in_place=in_place, repeats=repeats,
            warmup=warmup, compare=compare, timeout=timeout,
        )  # fmt: skip


def execute(
    program: Path,
    algorithms: Sequence[Path],
    *,
    counts: Iterable[int] = (1000,),
    dtypes: Iterable[str] = ("float32",),
    ops: Iterable[str] | None = None,
    in_place: Iterable[bool] | None = None,
    repeats: int = 1,
    warmup: int = 0,
    compare: bool = False,
    times: Sequence[Path] = (),
    timeout: float = 120.0,
) -> list[Row]:
    """Run a built executor on files for one number of ranks.

    With ``times``, one for each file, calls use oneCCL's own collective where that is faster, by the times in these
    files, to which the run adds what it had to time itself.

    Raises C0764 for no counts or types, C0763 if an element is wrong, and C0762 for every other failure: a refused
    file, a dead rank, the time limit (seconds). No process of it remains.
    """
    cases = {"--count": [str(n) for n in counts], "--dtype": list(dtypes)}
    if ops is not None:
        cases["--op"] = list(ops)
    if in_place is not None:
        cases["--place"] = ["in" if place else "out" for place in in_place]
    for option, values in cases.items():
        if not values:
            raise error("C0764", f"nothing to run: no {option.removeprefix('--')} given", exit_status=2)
    words = [word for option, values in cases.items() for word in (option, ",".join(values))]
    limit = ["--repeat", str(repeats), "--warmup", str(warmup), "--timeout", str(max(1, int(timeout)))]
    limit += [*["--compare"] * compare, *(word for path in times for word in ("--tune", str(path)))]
    status, out, err = _launch([str(program), *map(str, algorithms), *words, *limit], timeout + _GRACE_SECONDS)
    rows = [_row(line.split(), algorithms) for line in out.splitlines() if line.startswith("row ")]
    messages = [line for line in err.splitlines() if line.startswith("collc-oneccl: ")]
    if any(not row.exact for row in rows):
        notes = [line.removeprefix("collc-oneccl: ") for line in messages]
        names = ", ".join(dict.fromkeys(f"`{row.name}`" for row in rows if not row.exact))
        raise error("C0763", f"{names} gave wrong results over oneCCL", notes=notes[:_SHOWN_LINES])
    if status != 0:
        notes = [line.removeprefix("collc-oneccl: ") for line in messages] or (err + out).splitlines()
        raise error("C0762", f"the run over oneCCL ended with status {status}", notes=notes[:_SHOWN_LINES])
    return rows


def _row(words: Sequence[str], algorithms: Sequence[Path]) -> Row:
    _, file, dtype, op, place, count, micros, verdict, times, builtin = words
    return Row(
        algorithms[int(file)].stem,
        dtype,
        "" if op == "-" else op,
        place == "in",
        int(count),
        float(micros),
        verdict == "exact",
        _seconds(times),
        _seconds(builtin),
    )


def _seconds(listed: str) -> tuple[float, ...]:
    return () if listed == "-" else tuple(float(word) / 1e6 for word in listed.split(","))


def _launch(command: Sequence[str], seconds: float) -> tuple[int, str, str]:
    """Return status and output of the executor, which ends its ranks when it ends."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )  # fmt: skip
        except OSError as reason:
            raise error("C0762", f"`{command[0]}` does not run: {reason}") from None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = -int(signal.SIGKILL)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return status, _text(out), _text(err)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(1 << 24).decode(errors="replace")
