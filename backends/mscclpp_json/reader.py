"""Text -> document, for plans of any tool. The reader reports mistakes of form with their places."""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from collc.ir.diagnostic import CollcError, Source, Span, error, nearest
from collc.ir.json_places import json_place, place_at
from collc.ir.progress import counting
from collc.ir.shown import clipped

from ..base import MAX_TEXT
from .model import BUFFERS, LOOP, OPS, OPTIONAL, TRANSPORTS, Block, Channel, Gpu, Plan, PlanItem, PlanOp, RemoteBuffer
from .moves import Moves

__all__ = ["MAX_TEXT", "is_plan", "read"]

_MAX_MISTAKES = 20
_MOST_DIGITS = 20
_MOST_RANKS = 1 << 16
#: the largest number of the format, except of bytes
_MOST = 2**31 - 1
_MOST_BYTES = 2**64 - 1
_BYTES = frozenset({"min_message_size", "max_message_size", "unit_size"})

_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | int | bool | None"
_Path: TypeAlias = tuple[str | int, ...]
_T = TypeVar("_T")
#: numbers of channels or remote buffers, by transport
_Numbered: TypeAlias = "tuple[tuple[str, tuple[int, ...]], ...]"

#: names of operations and keys that only plans of v0.7 have
_OLD_NAMES = frozenset({"rs", "rrc", "rrcs", "rspkt", "tpkt", "rpkt", "rrcpkt", "rrcspkt", "ss", "rlxss", "cpks"})
_OLD_KEYS = frozenset({"i_buff", "o_buff", "o_cids", "i_cids", "srcbuff", "dstbuff", "ctype", "srcs", "dsts", "cids"})
_OLD_TYPES = frozenset({"sm", "proxy", "nvls"})

_PLAN_KEYS = frozenset({"name", "collective", "protocol", "inplace", "gpus", *OPTIONAL})
_GPU_KEYS = frozenset({
    "id", "input_chunks", "output_chunks", "scratch_chunks", "channels", "remote_buffers", "semaphores", "threadblocks",
})  # fmt: skip
_BLOCK_KEYS = frozenset({"id", "channels", "remote_buffer_refs", "ops"})
_OP_KEYS = frozenset({
    "name", "channel_type", "channel_ids", "src_buff", "dst_buff", "tbg_info", "reduce_op", "barrier_id",
    "num_threadblocks", "semaphore_ids", "iter_context", "ops",
})  # fmt: skip

_ITEM_KEYS = frozenset({"type", "buffer_id", "switch_channel_id", "index", "size"})
_GPUS = re.compile(r'"gpus"\s*:\s*\[')


def is_plan(text: str) -> bool:
    """Return whether a JSON text is a plan, of any version: it has an array `gpus`.

    >>> is_plan('{"name": "x", "gpus": []}'), is_plan('{"nodes": []}')
    (True, False)
    """
    return _GPUS.search(text) is not None


def read(text: str, path: str = "<json>") -> Plan:
    """Return the document of a plan.

    Raises C0660 (not JSON, too large or too deep, a name twice in an object), C0661 (JSON of another form) and C0662 (a
    plan of version 0.7). ``path`` names the text in messages. Keys that no runtime reads become remarks.
    """
    quick = _by_lines(text)
    if quick is not None:
        return quick
    source = Source(path, text)
    root = _parse(source)
    if not isinstance(root, dict):
        raise error("C0661", "found no object, needed a plan", span=json_place(source))
    found = _Reading()
    plan = found.plan(root)
    if found.mistakes or found.unknown or not found.names <= OPS.keys():
        _refuse_old(root, source)
    if found.mistakes:
        raise CollcError([
            one for message, where in found.mistakes
            for one in error("C0661", message, span=_place(source, where)).diagnostics
        ])  # fmt: skip
    return plan


def _place(source: Source, path: _Path) -> Span | None:
    """Return the place of a value, or of the nearest object that holds it."""
    spans = (json_place(source, *path[: len(path) - up]) for up in range(len(path) + 1))
    return next((span for span in spans if span is not None), None)


# ---- JSON


def _parse(source: Source) -> _Json:
    if len(source.text) > MAX_TEXT:
        found = f"{len(source.text) >> 20} MiB"
        raise error("C0660", f"the file is too large: found {found}, collc reads at most {MAX_TEXT >> 20} MiB")
    try:
        return _loaded(source.text.lstrip("\ufeff"))
    except _Refused as refused:
        at = source.text.find(refused.text)
        span = place_at(source, at, len(refused.text)) if at >= 0 else None
        raise error("C0660", str(refused), span=span) from None
    except json.JSONDecodeError as failure:
        span = place_at(source, min(failure.pos, max(len(source.text) - 1, 0)))
        reason = failure.msg.removesuffix(" starting at")
        raise error("C0660", f"not JSON: {reason[:1].lower()}{reason[1:]}", span=span) from None
    except RecursionError:
        raise error("C0660", "found more levels of nesting than any plan has", span=place_at(source, 0)) from None


def _loaded(text: str) -> _Json:
    found: _Json = json.loads(
        text, object_pairs_hook=_once, parse_int=_Numbers().__getitem__, parse_float=_no, parse_constant=_no
    )
    return found


class _Refused(Exception):
    """A text that stands for a value that no plan has."""

    def __init__(self, text: str, reason: str):
        super().__init__(reason)
        self.text = text


def _once(pairs: list[tuple[str, _Json]]) -> _Json:
    """Return an object; refuse one that has a name twice, of which each reader takes another value."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f'"{twice}"', f"an object has `{clipped(twice)}` twice")
    return found


class _Numbers(dict[str, int]):
    """The whole numbers of a text, by their digits: most stand there often."""

    def __missing__(self, text: str) -> int:
        if len(text) > _MOST_DIGITS:
            raise _Refused(text, f"found a number of {len(text)} digits, needed at most {_MOST_DIGITS}")
        number = self[text] = int(text)
        return number


def _no(text: str) -> _Json:
    raise _Refused(text, f"found `{clipped(text)}`, needed a whole number")


# ---- equal lines


def _by_lines(text: str) -> Plan | None:
    """Return the plan of a text in which many lines are equal operations; None if anything about it is unusual.

    No token of JSON stands on two lines. So a line that is an object can be replaced by a mark, a string that the text
    does not have, and each distinct object is parsed once. Operations on data in the writer's form need no parser of
    JSON. Of the others, an object with a name twice has fewer names than colons.
    """
    if len(text) > MAX_TEXT or "\\" in text or _MARK in text:
        return None
    lines = text.split("\n")
    marks: dict[str, str] = {}
    short = {line: _shortened(line, marks) for line in counting(dict.fromkeys(lines), "reading lines")}
    if len(lines) < _MANY * len(marks):
        return None
    moves = Moves()
    each = counting(marks.items(), "reading operations")
    known = {mark: op for line, mark in each if (op := moves.read(line)) is not None}
    others = [line for line, mark in marks.items() if mark not in known]
    try:
        parsed = json.loads("[" + f',"{_MARK}",'.join(others) + "]")
        short_text = "\n".join(map(short.__getitem__, lines))
        root = _loaded(short_text)
        if len(parsed) != max(2 * len(others) - 1, 0) or any(one != _MARK for one in parsed[1::2]):
            return None
        found = _Reading(dict(zip((marks[line] for line in others), parsed[::2], strict=True)), known)
        plan = found.plan(_object(root))
        usual = not found.mistakes and not found.unknown and found.names <= OPS.keys()
        usual = usual and found.marked.used == short_text.count(_MARK)
        return plan if usual and sum(map(_names, parsed[::2])) == sum(line.count(":") for line in others) else None
    except (ValueError, TypeError, RecursionError, _Refused, _Wrong):
        return None


class _Marked(dict[str, PlanOp]):
    """The operations that marks stand for, read when they are first found; ``used`` counts how often they are found."""

    def __init__(self, read_one: Callable[[_Json], PlanOp], values: Mapping[str, _Json], known: Mapping[str, PlanOp]):
        super().__init__(known)
        self.read_one, self.values_of, self.used = read_one, values, 0

    def __missing__(self, mark: str) -> PlanOp:
        op = self[mark] = self.read_one(self.values_of[mark])
        return op

    def all(self, marks: list[_Json]) -> tuple[PlanOp, ...] | None:
        """Return the operations that marks stand for; None if some are no marks."""
        try:
            found = tuple(map(self.__getitem__, marks))  # type: ignore[arg-type]  # others raise
        except (KeyError, TypeError):
            return None
        self.used += len(marks)
        return found


#: begins strings that stand for lines
_MARK = "\x7f"
#: how often lines that are objects are repeated where it pays to look for equal ones
_MANY = 2


def _shortened(line: str, marks: dict[str, str]) -> str:
    """Return a line, or the mark of the object that it is."""
    bare = line.strip(" \t\r")
    comma = bare.endswith(",")
    bare = bare[:-1] if comma else bare
    if not (bare.startswith('{"name":') and bare.endswith("}")):
        return line
    mark = marks.setdefault(bare, f"{_MARK}{len(marks)}")
    return f'"{mark}",' if comma else f'"{mark}"'


def _names(op: dict[str, Any]) -> int:  # Any: of JSON that was read
    """Return how many names an operation and its objects have."""
    sides = (item for key in ("src_buff", "dst_buff") if key in op for item in op[key])
    return len(op) + sum(map(len, sides)) + len(op.get("tbg_info", ()))


# ---- versions


def _refuse_old(root: Mapping[str, _Json], source: Source) -> None:
    """Raise C0662 for a plan of version 0.7, which names operations and channels otherwise."""
    for number, gpu in enumerate(_list(root.get("gpus"))):
        if not isinstance(gpu, dict):
            continue
        reason = _old_gpu(gpu)
        if reason:
            raise error(
                "C0662", f"a plan of MSCCL++ 0.7: {reason}", span=_place(source, ("gpus", number)),
                notes=["the runtimes from 0.8 on read another form: items with buffers, remote buffers, semaphores"],
                hint="write the plan again with MSCCL++ 0.8 or later, or compile it with collc",
            )  # fmt: skip


def _old_gpu(gpu: Mapping[str, _Json]) -> str:
    for key in ("inputChunks", "outputChunks", "scratchChunks", "sync_bufs"):
        if key in gpu:
            return f"it has the key `{key}`"
    for channel in _list(gpu.get("channels")):
        kind = channel.get("type", channel.get("channel_type")) if isinstance(channel, dict) else None
        if isinstance(kind, str) and isinstance(channel, dict) and (kind in _OLD_TYPES or "type" in channel):
            return f"it has channels of type `{clipped(kind)}`"
    for block in _list(gpu.get("threadblocks")):
        for op in _list(block.get("ops") if isinstance(block, dict) else None):
            if isinstance(op, dict) and (old := _old_op(op)):
                return old
    return ""


def _old_op(op: Mapping[str, _Json]) -> str:
    name = op.get("name")
    if isinstance(name, str) and name in _OLD_NAMES:
        return f"it has the operation `{name}`"
    keys = _OLD_KEYS.intersection(op)
    return f"an operation has the key `{min(keys)}`" if keys else ""


def _list(value: _Json) -> list[_Json]:
    return value if isinstance(value, list) else []


# ---- form


class _Wrong(Exception):
    """A value of another form, by its path inside the value that is read."""

    def __init__(self, message: str, *path: str | int):
        super().__init__(message)
        self.path = path


class _Reading:
    """Reads the values of one plan; what is wrong becomes a mistake with its path, the rest is read on."""

    def __init__(self, marked: Mapping[str, _Json] | None = None, known: Mapping[str, PlanOp] | None = None) -> None:
        self.marked = _Marked(self._marked_op, marked or {}, known or {})
        self.mistakes: list[tuple[str, _Path]] = []
        self.unknown: dict[str, str] = {}
        self.items: dict[tuple[object, ...], PlanItem] = {}
        self.ops: dict[bytes, PlanOp] = {}
        self.names: set[str] = set()

    def plan(self, root: Mapping[str, _Json]) -> Plan:
        """Return the plan; one with mistakes has stand-ins in place of them."""
        self._known(root, _PLAN_KEYS, "the plan")
        found = {key: self._try((), _value, root, key, type(value), value) for key, value in OPTIONAL.items()}
        texts = [self._try((), _value, root, key, str, None) or "" for key in ("name", "collective", "protocol")]
        inplace = self._try((), _value, root, "inplace", bool, None)
        gpus = self._try((), _value, root, "gpus", list, None) or []
        if not gpus and not self.mistakes:
            self.mistakes.append(("found no rank, needed at least 1 in `gpus`", ("gpus",)))
        if len(gpus) > _MOST_RANKS:
            self.mistakes.append((f"found {len(gpus)} ranks, collc reads at most {_MOST_RANKS}", ("gpus",)))
            gpus = []
        numbered = enumerate(counting(gpus, "reading ranks"))
        ranks = tuple(rank for r, gpu in numbered if (rank := self._gpu(gpu, ("gpus", r))) is not None)
        remarks = tuple(f"no runtime reads `{key}` of {where}" for key, where in self.unknown.items())
        return Plan(
            texts[0], texts[1], texts[2], bool(inplace), bool(found["reuse_resources"]),
            bool(found["use_double_scratch_buffer"]), int(found["buffer_alignment"] or 0),
            int(found["num_threads_per_block"] or 0), int(found["min_message_size"] or 0),
            int(found["max_message_size"] or 0), ranks, remarks,
        )  # fmt: skip

    # Any: the arguments are those of the function
    def _try(self, path: _Path, function: Callable[..., _T], *arguments: Any) -> _T | None:
        """Return what a function returns; None if it finds a mistake, which is kept with its path."""
        try:
            return function(*arguments)
        except _Wrong as wrong:
            if len(self.mistakes) < _MAX_MISTAKES:
                self.mistakes.append((str(wrong), (*path, *wrong.path)))
            return None

    def _known(self, found: Mapping[str, _Json], keys: frozenset[str], where: str) -> None:
        for key in found.keys() - keys:
            hint = nearest(key, sorted(keys)) or ""
            self.unknown.setdefault(clipped(key), where + (f" ({hint})" if hint else ""))

    def _gpu(self, gpu: _Json, path: _Path) -> Gpu | None:
        def head() -> tuple[int, int, int, int]:
            fields = _object(gpu)
            one, two, three, four = (
                _value(fields, key, int, None) for key in ("id", "input_chunks", "output_chunks", "scratch_chunks")
            )
            return one, two, three, four

        numbers = self._try(path, head)
        lists = self._try(path, _lists_of, gpu) if isinstance(gpu, dict) else None
        if numbers is None or lists is None or not isinstance(gpu, dict):
            return None
        self._known(gpu, _GPU_KEYS, "a rank")
        channels, buffers, semaphores, blocks = lists
        read = (self._block(one, (*path, "threadblocks", n)) for n, one in enumerate(blocks))
        return Gpu(*numbers, channels, buffers, semaphores, tuple(one for one in read if one is not None))

    def _block(self, block: _Json, path: _Path) -> Block | None:
        def head() -> tuple[int, _Numbered, _Numbered, list[_Json]]:
            fields = _object(block)
            return (
                _value(fields, "id", int, None),
                _numbered(fields, "channels", "channel_type", "channel_ids", TRANSPORTS),
                _numbered(fields, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids", _REMOTE),
                _value(fields, "ops", list, None),
            )

        found = self._try(path, head)
        if found is None or not isinstance(block, dict):
            return None
        self._known(block, _BLOCK_KEYS, "a threadblock")
        number, channels, buffers, listed = found
        if listed and type(listed[0]) is str and (marked := self.marked.all(listed)) is not None:
            return Block(number, channels, buffers, marked)
        ops: list[PlanOp] = []
        for n, one in enumerate(listed):
            try:
                ops.append(self._op(one))
            except _Wrong as wrong:
                if len(self.mistakes) < _MAX_MISTAKES:
                    self.mistakes.append((str(wrong), (*path, "ops", n, *wrong.path)))
        return Block(number, channels, buffers, tuple(ops))

    def _op(self, value: _Json, inside: bool = False) -> PlanOp:
        """Return an operation; equal ones are one object."""
        if type(value) is str and (marked := self.marked.all([value])):
            return marked[0]
        op = _object(value)
        name = op.get("name")
        if name == "nop" and len(op) == 1:
            return _NOP
        if name == LOOP:
            return self._new_op(op, name, inside)
        try:
            key = marshal.dumps(op, 2)  # a version whose bytes depend on values and their types only
        except ValueError:  # deeper than any operation is
            return self._new_op(op, name, inside)
        found = self.ops.get(key)
        if found is None:
            found = self.ops[key] = self._new_op(op, name, inside)
        return found

    def _marked_op(self, value: _Json) -> PlanOp:
        op = _object(value)
        return self._new_op(op, op.get("name"), inside=False)

    def _new_op(self, op: Mapping[str, _Json], name: _Json, inside: bool) -> PlanOp:
        if not op.keys() <= _OP_KEYS:
            self._known(op, _OP_KEYS, "an operation")
        if type(name) is not str:
            raise _Wrong("found no `name` of an operation", "name")
        if name == LOOP:
            return self._loop(op, inside)
        self.names.add(name)
        share, shares = _share(op["tbg_info"]) if "tbg_info" in op else (0, 1)
        transport = op.get("channel_type", "")
        if type(transport) is not str or transport not in _TYPES:
            raise _unlike(transport, "channel_type", _TYPES)
        return PlanOp(
            name, "" if transport == "none" else transport, _whole_numbers(op, "channel_ids"),
            self._items(op, "src_buff"), self._items(op, "dst_buff"), share, shares,
            _value(op, "barrier_id", int, 0) if "barrier_id" in op else 0,
            _value(op, "num_threadblocks", int, 0) if "num_threadblocks" in op else 0,
            _whole_numbers(op, "semaphore_ids"), _value(op, "reduce_op", str, "sum") if "reduce_op" in op else "sum",
        )  # fmt: skip

    def _loop(self, op: Mapping[str, _Json], inside: bool) -> PlanOp:
        if inside:
            raise _Wrong("a pipeline holds no pipeline", "name")
        context = _value(op, "iter_context", dict, None)
        unit, chunks = (_value(context, key, int, None) for key in ("unit_size", "num_chunks"))
        if unit < 1 or chunks < 1:
            raise _Wrong("a pipeline needs at least 1 in `unit_size` and in `num_chunks`", "iter_context")
        inner = []
        for n, one in enumerate(_value(op, "ops", list, None)):
            try:
                inner.append(self._op(one, inside=True))
            except _Wrong as wrong:
                raise _Wrong(str(wrong), "ops", n, *wrong.path) from None
        return PlanOp(LOOP, unit=unit, chunks=chunks, inner=tuple(inner))

    def _items(self, op: Mapping[str, _Json], key: str) -> tuple[PlanItem, ...]:
        if key not in op:
            return ()
        listed = op[key]
        if type(listed) is not list:
            raise _Wrong(f"found no array in `{key}`", key)
        return tuple([self._item(one, key, n) for n, one in enumerate(listed)])

    def _item(self, item: _Json, key: str, number: int) -> PlanItem:
        if type(item) is not dict:
            raise _Wrong("found no object, needed an item of a buffer", key, number)
        try:
            cached = self.items.get(tuple(item.items()))  # equal numbers of another type are caught below
        except TypeError:
            cached = None
        if cached is not None and bool not in map(type, item.values()):
            return cached
        found = self._new_item(item, key, number)
        if len(item) == 3:  # more are keys that no runtime reads, of any value
            self.items[tuple(item.items())] = found
        return found

    def _new_item(self, item: Mapping[str, _Json], key: str, number: int) -> PlanItem:
        if not item.keys() <= _ITEM_KEYS:
            self._known(item, _ITEM_KEYS, "an item")
        letter = item.get("type", "")
        if letter != "":
            letter = _word(item, "type", BUFFERS, key, number)
        remote, switch = item.get("buffer_id", -1), item.get("switch_channel_id", -1)
        if (letter != "") + (remote != -1) + (switch != -1) != 1:
            found = "an item has one of `type` (local), `buffer_id` (remote) and `switch_channel_id`"
            raise _Wrong(found, key, number)
        values = (item.get("index"), item.get("size"), remote, switch)
        for name, value in zip(("index", "size", "buffer_id", "switch_channel_id"), values, strict=True):
            if type(value) is not int or not (0 if name in item else -1) <= value <= _MOST:
                place = (key, number, name) if name in item else (key, number)
                raise _Wrong(f"found no whole number of at least 0 as `{name}` of an item", *place)
        return PlanItem(str(letter), *values)  # type: ignore[arg-type]  # whole numbers, by the loop above


_NOP = PlanOp("nop")
_TYPES = frozenset({"", "none", *TRANSPORTS})
_REMOTE = frozenset({"memory", "port"})


def _unlike(found: _Json, key: str, known: Iterable[str], *path: str | int) -> _Wrong:
    words = sorted(word for word in known if word)
    return _Wrong(f"found `{clipped(str(found))}` as `{key}`, needed {' or '.join(words)}", *path, key)


def _word(fields: Mapping[str, _Json], key: str, known: Collection[str], *path: str | int) -> str:
    """Return the word at a key, one of those known."""
    found = fields.get(key)
    if type(found) is not str or found not in known:
        raise _unlike(found, key, known, *path)
    return found


def _object(value: _Json) -> dict[str, _Json]:
    if type(value) is not dict:
        raise _Wrong("found no object")
    return value


def _value(fields: Mapping[str, _Json], key: str, kind: type[_T], default: _T | None) -> _T:
    """Return the value at a key; the default if there is none. Numbers are at least 0."""
    value = fields.get(key, default)
    if value is None and key not in fields:
        raise _Wrong(f"found no `{key}`")
    if type(value) is not kind:
        raise _Wrong(f"found no {_NOUNS[kind]} as `{key}`", key)
    if isinstance(value, int) and not 0 <= value <= (_MOST_BYTES if key in _BYTES else _MOST):
        most = "2^64-1" if key in _BYTES else "2^31-1"
        raise _Wrong(f"found {value} as `{key}`, needed 0 to {most}", key)
    return value


_NOUNS: dict[type, str] = {int: "whole number", bool: "`true` or `false`", str: "text", list: "array", dict: "object"}


def _whole_numbers(fields: Mapping[str, _Json], key: str) -> tuple[int, ...]:
    if key not in fields:
        return ()
    value = fields[key]
    if type(value) is not list or not all(type(one) is int and 0 <= one <= _MOST for one in value):
        raise _Wrong(f"found no array of whole numbers as `{key}`", key)
    return tuple(value)  # type: ignore[arg-type]  # whole numbers


def _lists_of(
    fields: Mapping[str, _Json],
) -> tuple[tuple[Channel, ...], tuple[RemoteBuffer, ...], tuple[int, ...], list[_Json]]:
    """Return channels, remote buffers, semaphores and blocks of a rank; blocks as they stand."""
    return (
        tuple(_channel(one, n) for n, one in enumerate(_value(fields, "channels", list, None))),
        tuple(_remote(one, n) for n, one in enumerate(_value(fields, "remote_buffers", list, None))),
        tuple(_semaphore(one, n) for n, one in enumerate(_value(fields, "semaphores", list, []))),
        _value(fields, "threadblocks", list, None),
    )


def _share(value: _Json) -> tuple[int, int]:
    fields = _object(value)
    share, shares = _value(fields, "tb_id", int, None), _value(fields, "tbg_size", int, None)
    if not share < shares:
        raise _Wrong(f"found slice {share} of {shares} in `tbg_info`, needed one from 0 to {shares - 1}", "tbg_info")
    return share, shares


def _channel(value: _Json, number: int) -> Channel:
    try:
        fields = _object(value)
        kind = _word(fields, "channel_type", TRANSPORTS)
        if kind != "switch":
            if "connected_to" not in fields:
                raise _Wrong("found no `connected_to`")
            return Channel(kind, _whole_numbers(fields, "connected_to"))
        letter = _word(fields, "buffer_type", BUFFERS)
        groups = _value(fields, "rank_groups", list, None)
        return Channel(kind, (), letter, tuple(_whole_numbers(_object(one), "ranks") for one in groups))
    except _Wrong as wrong:
        raise _Wrong(str(wrong), "channels", number, *wrong.path) from None


def _remote(value: _Json, number: int) -> RemoteBuffer:
    try:
        fields = _object(value)
        letter, kinds = _word(fields, "type", BUFFERS), _value(fields, "access_channel_types", list, None)
        for kind in kinds:
            if type(kind) is not str or kind not in _REMOTE:
                raise _unlike(kind, "access_channel_types", _REMOTE)
        return RemoteBuffer(_value(fields, "rank", int, None), letter, tuple(kinds))
    except _Wrong as wrong:
        raise _Wrong(str(wrong), "remote_buffers", number, *wrong.path) from None


def _semaphore(value: _Json, number: int) -> int:
    try:
        found: int = _value(_object(value), "init_value", int, None)
    except _Wrong as wrong:
        raise _Wrong(str(wrong), "semaphores", number, *wrong.path) from None
    return found


def _numbered(
    fields: Mapping[str, _Json], key: str, kind_key: str, ids_key: str, kinds: Collection[str]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the lists of numbers of a block, each with its transport; only remote buffers may be absent."""
    listed = _value(fields, key, list, [] if key == "remote_buffer_refs" else None)
    return tuple(_numbers_of(one, key, n, kind_key, ids_key, kinds) for n, one in enumerate(listed))


def _numbers_of(
    value: _Json, key: str, number: int, kind_key: str, ids_key: str, kinds: Collection[str]
) -> tuple[str, tuple[int, ...]]:
    try:
        fields = _object(value)
        kind = _word(fields, kind_key, kinds)
        if ids_key not in fields:
            raise _Wrong(f"found no `{ids_key}`")
        return kind, _whole_numbers(fields, ids_key)
    except _Wrong as wrong:
        raise _Wrong(str(wrong), key, number, *wrong.path) from None
