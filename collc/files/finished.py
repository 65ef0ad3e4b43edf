"""Files of finished units of work: a run that was killed goes on with the units that it lacks.

A unit is one line, appended when its result is there: a checksum, then a JSON list of the unit's name and the text of
its result. A line that does not fit its checksum, such as the torn last one of a killed run, is ignored: its unit is
done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os

from .reasons import writing

__all__ = ["Finished"]

_DIGITS = 16


class Finished:
    """The finished units of a file, which is made with the first of them. Raises C0004 if it cannot be written."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known = dict[str, str]()
        data = b""
        with writing(path), contextlib.suppress(FileNotFoundError), open(path, "rb") as stream:
            data = stream.read()
        self._torn = bool(data) and not data.endswith(b"\n")
        for line in data.splitlines():
            self.known.update(_unit(line))

    def get(self, unit: str) -> str | None:
        """Return the result of a unit, None if the file lacks it."""
        return self.known.get(unit)

    def add(self, unit: str, result: str) -> None:
        """Append the result of a unit, so that it outlasts this process and the machine."""
        line = _line(unit, result)
        with writing(self.path), open(self.path, "ab", buffering=0) as stream:
            stream.write(b"\n" * self._torn + line)
            os.fsync(stream.fileno())
        self._torn = False
        self.known[unit] = result

    def clear(self) -> None:
        """Remove the file: its results are in another one."""
        self.known.clear()
        self._torn = False
        with writing(self.path), contextlib.suppress(FileNotFoundError):
            os.remove(self.path)


def _line(unit: str, result: str) -> bytes:
    text = json.dumps([unit, result]).encode()
    return _checksum(text) + b" " + text + b"\n"


def _unit(line: bytes) -> dict[str, str]:
    """Return a line's unit and result, nothing for a line that is not whole."""
    checksum, _, text = line.partition(b" ")
    if checksum != _checksum(text):
        return {}
    unit, result = json.loads(text)
    return {unit: result}


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:_DIGITS].encode()
