"""Does collc answer wrongly, crash, hang, or leave half a result? Hostile inputs, planted faults, interrupted runs.

    python benchmarks/campaign.py [--minutes 1] [--seed 1] [--parts NAMES] [--jobs 2] [--keep FOLDER]
    python benchmarks/campaign.py --only PART:NUMBER [--seed 1]

(a) Texts. ``mutations`` changes texts of all kinds: .coll, XML, IR, databases, measurements. ``grammar`` draws what the
    grammar allows. ``specifications`` draws texts that mean something: an independent interpreter executes the results,
    and no cost may beat its bound. ``commands`` draws command lines, and runs each twice. ``imports`` damages files of
    machines and fabrics; the command and the language must agree on them.
(b) Faults. ``columns`` plants them in schedules and programs, ``passes`` in what a pass returns, ``files`` in MSCCL-XML
    files as other people's. An independent interpreter says which are harmful. Each harmful one must be refused, and
    a pass's fault must be blamed on that pass. ``outputs`` changes emitted files of all targets: none is accepted.
(c) ``interruptions``: signals and kills at random moments, closed pipes, full disks, folders in the way. All outputs
    or none. ``caches``: changed entries, folders that cannot be a cache, two processes on one, cancelled calls. The
    files are those of a run without a cache.

The seed, the part and the number determine a case, so ``--only`` repeats it. The time decides how many cases are tried,
never what a case finds. Each finding is one line, with a reproducer that is made small by deleting. Keep reproducers
in ``tests/corpus``, which the tests replay. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "tests" / "support")]

from hostile import faults, fuzzing  # noqa: E402
from hostile.caches import caches  # noqa: E402
from hostile.commands import commands  # noqa: E402
from hostile.findings import Finding, Part  # noqa: E402
from hostile.imports import imports  # noqa: E402
from hostile.interruptions import interruptions  # noqa: E402

PARTS = (
    Part("mutations", 25, fuzzing.mutations),
    Part("grammar", 5, fuzzing.grammar),
    Part("imports", 15, imports),
    Part("specifications", 30, fuzzing.specifications),
    Part("commands", 20, commands),
    Part("columns", 12, faults.columns, faults.prepare),
    Part("passes", 10, faults.passes, faults.prepare),
    Part("files", 8, faults.files, faults.prepare),
    Part("outputs", 8, faults.outputs, faults.prepare),
    Part("caches", 10, caches),
    Part("interruptions", 20, interruptions),
)


def _work(job: int, jobs: int, seed: int, seconds: float, names: list[str], results: Any) -> None:
    """Try the cases of one job, the parts in turn by their shares, until the time is over."""
    parts = [part for part in PARTS if part.name in names]
    spent = {part.name: 0.0 for part in parts}
    number = Counter({part.name: job for part in parts})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        part = min(parts, key=lambda p: spent[p.name] / p.share)
        begun = time.monotonic()
        found = part.run(seed, number[part.name])
        spent[part.name] += time.monotonic() - begun
        number[part.name] += jobs
        results.put((part.name, found))
    results.put(None)


def campaign(
    seconds: float, seed: int, names: list[str], jobs: int, keep: Path | None
) -> tuple[Counter[str], list[Finding]]:
    """Run for ``seconds``; print findings as they come; return the number of cases by part, and the findings."""
    for part in PARTS:
        if part.name in names:
            part.prepare()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_work, args=(j, jobs, seed, seconds, names, results)) for j in range(jobs)]
    for worker in workers:
        worker.start()
    tried: Counter[str] = Counter()
    findings: list[Finding] = []
    running = jobs
    while running:
        item = results.get()
        if item is None:
            running -= 1
            continue
        name, found = item
        tried[name] += 1
        for finding in found:
            findings.append(finding)
            path = f" [{finding.kept(keep)}]" if keep else ""
            print(f"finding {finding.case} (seed {seed}): {finding.what}{path}", flush=True)
    for worker in workers:
        worker.join()
    return tried, findings


def _repeat(case: str, seed: int) -> list[Finding]:
    name, _, number = case.partition(":")
    part = next(part for part in PARTS if part.name == name)
    return part.run(seed, int(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", default=",".join(part.name for part in PARTS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="write reproducers here")
    parser.add_argument("--only", metavar="PART:NUMBER", help="repeat one case")
    options = parser.parse_args()
    if options.only:
        found = _repeat(options.only, options.seed)
        for finding in found:
            print(f"{finding.what}\n{finding.text}")
        return 1 if found else 0
    names = options.parts.split(",")
    if unknown := set(names) - {part.name for part in PARTS}:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    tried, findings = campaign(60 * options.minutes, options.seed, names, options.jobs, options.keep)
    for part in PARTS:
        print(f"{part.name:<16}{tried[part.name]:>9} cases")
    print(f"{sum(tried.values())} cases, {len(findings)} findings, seed {options.seed}, {options.minutes:g} minutes")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
