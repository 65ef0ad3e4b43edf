"""Reading `.coll` texts: seconds for each megabyte, by size and kind of text.

    python benchmarks/parser.py [--sizes 1,2,5,10] [--kinds params,links,..]

Prints the processor's seconds a megabyte for the parser alone and for everything until the specification is there, and
the most memory that was taken; the numbers of one kind should not depend on the size. Each text is read in a process of
its own. Topologies end at the limit on their nodes, which is then said.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from collc.frontends import coll
from collc.frontends.coll.parser import parse_file
from collc.ir.diagnostic import CollcError, Source

_PAIR = "topology t = uniring(2);\ncollective c = allreduce on t;\n"


def _endless(line: Callable[[int], str]) -> Iterator[str]:
    number = 0
    while True:
        yield line(number)
        number += 1


#: kind -> what the text begins with, its lines by number, what it ends with
KINDS: dict[str, tuple[str, Callable[[int], str], str]] = {
    "params": ("", lambda i: f"param n{i} = {i % 97};\n", ""),
    "lets": ("let n0 = 1;\n", lambda i: f"let n{i + 1} = n{i} + {i % 97} - {i % 97};\n", ""),
    "topologies": ("", lambda i: f"topology t{i} = complete({i % 3 + 1});\n", ""),
    "collectives": (
        _PAIR,
        lambda i: f"collective c{i} = allreduce on t {{ size: 64 MiB, op: sum }};\nschedule c{i} using bfb;\n", ""
    ),
    "emits": (_PAIR, lambda i: f"emit c as msccl-xml {{ channels: {i % 9} }};\n", ""),
    "ranks": ("topology t {\n", lambda i: f"  let m{i} = 2;\n  # rank {i}\n", "  rank r;\n}\n"),
    "links": (
        "topology t {\n  rank r[1000];\n",
        lambda i: f"  link r[{i % 1000}] -> r[{(i + 1) % 1000}] : 25 GB/s, 1 us;\n", "}\n",
    ),
    "steps": (
        "topology t = complete(100);\ncollective c = allgather on t;\nschedule c using steps {\n",
        lambda i: f"  at {i // 9900}: send shard {i % 100} from {i % 100} to {(i + 1 + i // 100 % 99) % 100};\n", "}\n",
    ),
    "parentheses": ("", lambda i: f"let n{i} = ((1 + {i % 7}) * (2 - (3 - 1))) mod 5;\n", ""),
    "comments": ("", lambda i: f"# comment {i} of many, which says nothing\n\n", ""),
}  # fmt: skip


def text_of(kind: str, size: int) -> str:
    """Return a text of a kind, of ``size`` characters and at most a line more."""
    first, line, last = KINDS[kind]
    lines, length = [first], len(first) + len(last)
    for one in _endless(line):
        if length >= size:
            break
        lines.append(one)
        length += len(one)
    return "".join([*lines, last])


def measure(kind: str, megabytes: float) -> str:
    """Return a row of the table: this process reads one text twice."""
    text = text_of(kind, int(megabytes * 1e6))
    coll.load("x", text=_PAIR)
    began = time.process_time()
    problems = parse_file(Source("x", text)).problems
    parsed = time.process_time() - began
    assert not problems
    began, message = time.process_time(), ""
    try:
        coll.load("x", text=text)
    except CollcError as failure:
        message = f"  {failure.diagnostics[0].message[:60]}"
    loaded = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = len(text) / 1e6
    times = " ".join(f"{seconds:8.2f} {seconds / size:8.2f}" for seconds in (parsed, loaded))
    return f"{kind:12} {size:6.1f} {times} {memory:8.0f}{message}"


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--sizes", default="1,2,5,10", help="megabytes, separated by commas")
    options.add_argument("--kinds", default=",".join(KINDS))
    options.add_argument("--one", nargs=2, metavar=("KIND", "MB"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(measure(given.one[0], float(given.one[1])), flush=True)
        return
    print(f"{'kind':12} {'MB':>6} {'parse s':>8} {'s/MB':>8} {'load s':>8} {'s/MB':>8} {'MiB':>8}")
    for kind in given.kinds.split(","):
        for size in given.sizes.split(","):
            subprocess.run([sys.executable, __file__, "--one", kind, size], check=True)


if __name__ == "__main__":
    main()
