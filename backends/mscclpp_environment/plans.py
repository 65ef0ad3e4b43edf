"""The head of a plan: what MSCCL++ chooses it by. Its operations are not judged here: ``collc verify`` does that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import lcm
from typing import TypeAlias

from collc.ir.diagnostic import CollcError, Diagnostic, error
from collc.ir.frozen import frozen
from collc.ir.shown import counted, listed

__all__ = ["PlanFile", "is_plan", "plan_file", "plans_in", "require_together"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

#: the size of a call that no plan limits
UNBOUNDED = 2**64 - 1
#: collectives whose calls the runtime measures by the bytes of all ranks together
WHOLE = ("allgather", "reducescatter")


@frozen
class PlanFile:
    """What MSCCL++ chooses a plan by: collective, ranks, in-place mode, and the sizes of calls, both inclusive.

    ``shares_memory`` is the least number of adjacent ranks that must reach each other's memory: the plan has memory
    and switch channels only inside such groups. A call's bytes must be a multiple of ``granularity``.
    """

    path: str
    name: str
    collective: str
    ranks: int
    inplace: bool
    low: int
    high: int
    shares_memory: int = 1
    granularity: int = 16

    @property
    def sizes(self) -> str:
        """The sizes of its calls for messages."""
        most = f"to {self.high} bytes" if self.high < UNBOUNDED else "bytes and more"
        return f"{self.low} {most}"

    @property
    def mode(self) -> str:
        """Its in-place mode for messages."""
        return "in place" if self.inplace else "out of place"

    def meets(self, other: PlanFile) -> bool:
        """Return whether MSCCL++ could take either plan for some call."""
        same = (self.collective, self.ranks, self.inplace) == (other.collective, other.ranks, other.inplace)
        return same and self.low <= other.high and other.low <= self.high


def is_plan(text: str) -> bool:
    """Return whether a text is JSON with ranks of a plan; never raises.

    >>> is_plan('{"name": "ring", "gpus": []}'), is_plan('{"nodes": []}'), is_plan("<algo/>")
    (True, False, False)
    """
    if not text[:4096].lstrip("\ufeff \t\r\n").startswith("{") or '"gpus"' not in text:
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("gpus"), list)


def plan_file(path: str, text: str) -> PlanFile:
    """Return the head of a plan; raise C0690 for a text that is none, C0674 for a plan that serves no call."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _none(path, f"it is not JSON: {problem}") from None
    return _Head(path, whole).read()


def plans_in(folder: str) -> tuple[PlanFile, ...]:
    """Return the plans of a folder in the order of their names, or the plan in a file.

    Files that do not end with ``.json``, and JSON of another kind, do not count. Raises C0690 if there is no plan, and
    for files that cannot be read.
    """
    found = []
    for path in _paths(folder):
        text = _text(path)
        if path == folder or is_plan(text) or not _is_object(text):
            found.append(plan_file(path, text))
    if not found:
        raise error("C0690", f"there is no plan in `{folder}`", hint="`collc FILE.coll -t mscclpp-json -o DIR/` writes")
    return tuple(found)


def _paths(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return [folder]
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json"))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as problem:
        raise error("C0690", f"cannot read `{path}`: {(problem.strerror or str(problem)).lower()}") from None
    except UnicodeDecodeError:
        raise _none(path, "it is not text") from None


def _is_object(text: str) -> bool:
    """Return whether a text is JSON of any kind; a cut file is not, and must not be passed over."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _none(path: str, why: str) -> CollcError:
    return error("C0690", f"`{path}` is no plan for MSCCL++: {why}")


@frozen
class _Head:
    """A plan's text as JSON, and its path for messages."""

    path: str
    whole: Json

    def read(self) -> PlanFile:
        if not isinstance(self.whole, dict):
            raise _none(self.path, "it is not an object")
        gpus = self.whole.get("gpus")
        if not isinstance(gpus, list) or not gpus:
            raise _none(self.path, "`gpus` lists no rank")
        found = PlanFile(
            self.path, self.word("name"), self.word("collective"), len(gpus), self.flag("inplace"),
            self.size("min_message_size", 0), self.size("max_message_size", UNBOUNDED),
            _shares_memory(gpus), self.granularity(gpus),
        )  # fmt: skip
        if -(-max(found.low, 1) // found.granularity) * found.granularity > found.high:
            message = f"`{self.path}` serves no call: none of {found.low} to {found.high} bytes"
            raise error("C0674", f"{message} is a multiple of {found.granularity}")
        return found

    def value(self, key: str) -> Json:
        assert isinstance(self.whole, dict)
        return self.whole.get(key)

    def word(self, key: str) -> str:
        found = self.value(key)
        if not isinstance(found, str):
            raise _none(self.path, f"`{key}` is not a text")
        return found

    def flag(self, key: str) -> bool:
        found = self.value(key)
        if not isinstance(found, bool):
            raise _none(self.path, f"`{key}` is neither `true` nor `false`")
        return found

    def size(self, key: str, default: int) -> int:
        found = self.value(key)
        if found is None:
            return default
        if type(found) is not int or not 0 <= found <= UNBOUNDED:
            raise _none(self.path, f"`{key}` is not a number of bytes")
        return found

    def granularity(self, gpus: list[Json]) -> int:
        """Return the bytes that divide every call: alignment times chunks of the buffer that the runtime measures."""
        key = "output_chunks" if self.value("collective") == "allgather" else "input_chunks"
        counts = [gpu.get(key) for gpu in gpus if isinstance(gpu, dict)]
        chunks = [count for count in counts if type(count) is int and count > 0]
        return max(self.size("buffer_alignment", 16), 1) * lcm(*chunks)


def _shares_memory(gpus: list[Json]) -> int:
    """Return the least number of adjacent ranks that holds every pair that memory or a switch joins."""
    pairs = {pair for rank, gpu in enumerate(gpus) for pair in _joined(rank, gpu)}
    size = len(gpus)
    fitting = (n for n in range(1, size + 1) if size % n == 0 and all(a // n == b // n for a, b in pairs))
    return next(fitting, size)


def _joined(rank: int, gpu: Json) -> Iterator[tuple[int, int]]:
    """Yield the pairs of ranks that memory or a switch joins, as a rank of a plan lists them."""
    for channel in _dicts(gpu, "channels"):
        if channel.get("channel_type") == "memory":
            yield from ((rank, peer) for peer in _ints(channel.get("connected_to")))
        for group in _dicts(channel, "rank_groups"):
            yield from ((rank, peer) for peer in _ints(group.get("ranks")))
    for buffer in _dicts(gpu, "remote_buffers"):
        types = buffer.get("access_channel_types")
        if isinstance(types, list) and "memory" in types:
            yield from ((rank, peer) for peer in _ints([buffer.get("rank")]))


def _dicts(of: Json, key: str) -> list[dict[str, Json]]:
    found = of.get(key) if isinstance(of, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _ints(found: Json) -> list[int]:
    return [one for one in found if type(one) is int] if isinstance(found, list) else []


# ---- several plans


def require_together(files: Sequence[PlanFile]) -> None:
    """Raise C0688 for two plans for one call, C0689 for two in-place modes, C0663 for two plans of one name.

    It takes the first plan that fits, in the order of a hash table. It keeps the channels of a plan by the plan's name.
    The mode of the first plan that it looks at counts for all plans of the process.
    """
    wrong = [
        Diagnostic(code, f"`{a.path}` and `{b.path}` {why}", hint=hint)
        for a, b in combinations(files, 2) for code, why, hint in _conflicts(a, b)
    ]  # fmt: skip
    modes = {file.mode: file for file in reversed(files)}
    if len(modes) > 1:
        both = listed([f"`{file.path}` works {mode}" for mode, file in sorted(modes.items())])
        hint = "use plans of one mode, or one process for each mode"
        wrong.append(Diagnostic("C0689", f"the plans differ in their in-place mode: {both}", hint=hint))
    if wrong:
        raise CollcError(wrong)


def _conflicts(a: PlanFile, b: PlanFile) -> Iterator[tuple[str, str, str]]:
    if a.meets(b):
        low, high = max(a.low, b.low), min(a.high, b.high)
        most = f"to {high} bytes" if high < UNBOUNDED else "bytes and more"
        what = f"serve the same calls: {a.collective} on {counted(a.ranks, 'rank')}, {low} {most}"
        yield "C0688", what, "write them for different sizes: options `min-bytes` and `max-bytes` of the target"
    if a.name == b.name:
        yield "C0663", f"have one name, `{a.name}`", "MSCCL++ keeps the channels of a plan by its name: rename one"
