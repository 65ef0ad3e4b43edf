"""Part (c): caches that were changed, shared or cut off, and folders that are none: the files are as without one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .answers import Servant, command
from .findings import Finding
from .fuzzing import judged
from .specs import specification

__all__ = ["caches"]

_WORDS = ("compile", "spec.coll", "-o", "out/", "--node-limit", "32")
_CACHED = (*_WORDS, "--cache=cache")
#: what a record must not be believed to hold
_ODD = (b"", b"{}", b"[]", b"null", b"0", b'"text"', b"nan", b"-1", b"[[[[", b"\xff\xfe", b"9" * 40)

Files = dict[str, str]
_servant = Servant()


def caches(seed: int, number: int) -> list[Finding]:
    """Fill a cache, damage it, and use it: the files are those of a run without a cache."""
    luck = random.Random(f"caches {seed} {number}")
    text = specification(luck)
    plain = _servant.ask(command, _WORDS, {"spec.coll": text})
    if judged(plain, _WORDS) or plain.value[0]:  # other parts judge these
        return []
    what = luck.choice((_damaged, _damaged, _damaged, _rewritten, _refused, _shared, _cancelled))(
        text, plain.value[3], luck
    )
    return [Finding(f"caches:{number}", what, text, ".coll")] if what else []


def _filled(text: str) -> Files:
    """Return the cache that a run leaves; nothing if the run keeps nothing."""
    left = _servant.ask(command, _CACHED, {"spec.coll": text}).value[3]
    return {name: content for name, content in left.items() if name.startswith("cache/")}


def _used(text: str, plain: Files, cache: Files, what: str) -> str:
    """Run with a cache; return how the files differ from those of ``plain``."""
    answer = _servant.ask(command, _CACHED, {"spec.coll": text, **cache})
    if wrong := judged(answer, _CACHED):
        return f"{what}: {wrong}"
    status, _, err, left = answer.value
    if status:
        return f"{what}: exit status {status}: {err[:200]}"
    files = {name: content for name, content in left.items() if not name.startswith("cache/")}
    return "" if files == plain else f"{what}: other files than without a cache: {sorted(files)}"


def _damaged(text: str, plain: Files, luck: random.Random) -> str:
    """Cut off, change or replace a part of an entry."""
    cache = _filled(text)
    name = luck.choice(sorted(cache))
    content = cache[name].encode(errors="surrogateescape")
    at = luck.randrange(len(content))
    end = at + luck.choice((0, 1, 1, 30, len(content)))
    content = content[:at] + luck.choice(_ODD) + content[end:]
    cache[name] = content.decode(errors="surrogateescape")
    return _used(text, plain, cache, f"an entry with another text from byte {at} to {end}")


def _rewritten(text: str, plain: Files, luck: random.Random) -> str:
    """Change an entry, and its digest with it: collc may believe the entry, and does not crash."""
    cache = _filled(text)
    name = luck.choice(sorted(cache))
    _, _, body = cache[name].encode(errors="surrogateescape").partition(b"\n")
    at = luck.randrange(len(body))
    body = body[:at] + luck.choice(_ODD) + body[at + luck.choice((1, 2, 30)) :]
    head = b"collc-store 1 " + hashlib.sha256(body).hexdigest().encode()
    cache[name] = (head + b"\n" + body).decode(errors="surrogateescape")
    wrong = judged(_servant.ask(command, _CACHED, {"spec.coll": text, **cache}), _CACHED)
    return f"an entry with another record, from byte {at} on: {wrong}" if wrong else ""


def _prepared(prepare: Callable[[Path], object], text: str) -> tuple[int, str, Files]:
    """Run with a cache in a folder that was prepared; return status, errors and the outputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.coll").write_text(text)
        prepare(folder)
        done = _process(folder, "out/")
        _, err = done.communicate(timeout=120)
        return done.returncode, err.decode(errors="replace"), _outputs(folder, "out")


def _refused(text: str, plain: Files, luck: random.Random) -> str:
    """Name as the cache what cannot be one: collc says so, and writes nothing."""
    how = luck.choice(("a file", "a link to nothing", "open to others", "below a file"))
    status, err, files = _prepared(lambda folder: _not_a_cache(folder / "cache", how), text)
    if status != 1 or "C0085" not in err or "Traceback" in err or files:
        return f"the cache is {how}: exit status {status}, {sorted(files)}: {err[-300:]}"
    return ""


def _not_a_cache(path: Path, how: str) -> None:
    if how == "open to others":
        path.mkdir()
        path.chmod(0o777)
    elif how == "a link to nothing":
        path.symlink_to("/dev/null/nothing")
    elif how == "below a file":
        path.parent.joinpath("spare").write_text("")
        path.symlink_to("spare/cache")
    else:
        path.write_text("")


def _shared(text: str, plain: Files, luck: random.Random) -> str:
    """Let two processes use one cache at the same time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.coll").write_text(text)
        children = [_process(folder, f"{out}/") for out in ("one", "two")]
        ended = [(child.communicate(timeout=300)[1], child.returncode) for child in children]
        for err, status in ended:
            if status or b"Traceback" in err:
                return f"two processes on one cache: exit status {status}: {err.decode(errors='replace')[-300:]}"
        files = {name.removeprefix("out/"): content for name, content in plain.items()}
        for out in ("one", "two"):
            if {name.removeprefix(f"{out}/"): c for name, c in _outputs(folder, out).items()} != files:
                return "two processes on one cache: other files than without a cache"
        left = [name for name in os.listdir(folder / "cache") if not name.endswith(".json")]
        return f"two processes on one cache leave {left}" if left else ""


class _Countdown:
    """A wish to cancel that comes when it is asked about for the so manieth time."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def is_set(self) -> bool:
        """Whether the time has come."""
        self.left -= 1
        return self.left < 0


def _cancelled(text: str, plain: Files, luck: random.Random) -> str:
    """Cancel a call of the API, and repeat it on the same cache."""
    texts, moment = [text, specification(luck)], int(2 ** (12 * luck.random()))
    answer = _servant.ask(_after_cancelling, texts, moment)
    return answer.broken or answer.value


def _after_cancelling(texts: list[str], moment: int) -> str:
    import collc

    def files_by_name(**options: Any) -> list[object]:
        found = collc.compile_many([{"text": one} for one in texts], node_limit=32, **options)
        return [
            one.exit_status if isinstance(one, collc.CollcError) else {n: a.text for n, a in one.files.items()}
            for one in found
        ]

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(collc.Cancelled):
            files_by_name(cache=folder, cancel=_Countdown(moment))
        if left := [name for name in os.listdir(folder) if not name.endswith(".json")]:
            return f"cancelled at {moment}: {left} are left in the cache"
        is_same = files_by_name(cache=folder) == files_by_name()
        return "" if is_same else f"cancelled at {moment}: other files than without a cache"


def _process(folder: Path, out: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "collc", *(out if word == "out/" else word for word in _CACHED)]
    return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _outputs(folder: Path, out: str) -> Files:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="surrogateescape")
        for path in sorted((folder / out).rglob("*")) if path.is_file()
    }  # fmt: skip
