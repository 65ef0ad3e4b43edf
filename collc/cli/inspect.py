"""``collc check`` and ``collc verify``: check a file, without outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from collc.ir.verify import Report

from ..driver.compilation import make_jobs
from ..reading import load as load_file
from ..reading import reader, sniff
from ..reading.base import ReadOptions
from .console import Console
from .inputs import loading, read
from .table import table

__all__ = ["check", "verify"]


def check(options: SimpleNamespace, console: Console) -> int:
    """Parse and elaborate a file; with -v, list its declarations."""
    text, name = read(options.files[0], console)
    spec, _ = load_file(text, name, "check", ReadOptions(loading(options)))
    if spec.collectives:
        make_jobs(spec)  # names of targets and their options are part of the file
    console.warn(spec.warnings)
    topologies = [
        {
            "name": n,
            "ranks": t.num_ranks,
            "switches": t.num_switches,
            "links": t.num_links,
            "degree": t.degree,
        }
        for n, t in spec.topologies.items()
    ]
    collectives = [
        {
            "name": c.name, "kind": c.problem.collective.kind, "topology": c.topology,
            "scheduler": c.schedule.scheduler, "emits": [e.target for e in c.emits],
        }
        for c in spec.collectives.values()
    ]  # fmt: skip
    if options.json:
        console.json({"ok": True, "topologies": topologies, "collectives": collectives, "files": list(spec.files)})
    else:
        for t in topologies:
            console.say(f"topology {t['name']}: {t['ranks']} ranks, {t['switches']} switches, {t['links']} links")
        for c in collectives:
            console.say(f"collective {c['name']}: {c['kind']} on {c['topology']} using {c['scheduler']}")
    return 0


def verify(options: SimpleNamespace, console: Console) -> int:
    """Execute files symbolically and print every check; return 0 if all hold, else 1.

    Several MSCCL-XML files are held against each other too.
    """
    texts = [read(path, console) for path in options.files]
    console.progress("verifying")
    found = [(name, *one) for text, name in texts for one in _verify(text, name, options, console)]
    found += [("together", "", together) for together in _together(texts, options.runtime)]
    ok = all(report.ok for _, _, report in found)
    if options.json:
        objects = [_object(n, report) for _, n, report in found]
        if len(texts) > 1:
            objects = [{"path": path, **one} for (path, _, _), one in zip(found, objects, strict=True)]
            console.json({**objects[-1], "ok": ok, "files": objects})
        else:
            console.json(objects[0] if len(objects) == 1 else {**objects[0], "ok": ok, "collectives": objects})
    elif not console.errors_only or not ok:
        console.out("".join(_text(path, n, report) for path, n, report in found))
    console.warn(warning for _, _, report in found for warning in report.warnings)
    return 0 if ok else 1


def _verify(text: str, name: str, options: SimpleNamespace, console: Console) -> list[tuple[str, Report]]:
    """Return the reports on one file, each with the name of its collective if the file has names."""
    from ..tools.verification import verify_file

    only, runtime, places = tuple(options.collective), options.runtime, options.multiprocessors
    found = verify_file(text, name, ReadOptions(loading(options), only, None, runtime, places))
    console.warn(found.warnings)
    return list(found.named)


def _together(texts: Sequence[tuple[str, str]], runtime: str | None) -> Iterator[Report]:
    """Yield a report for each format with several files, which one runtime would load together."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for text, path in texts if len(texts) > 1 else ():
        alike.setdefault(sniff(text), []).append((text, path))
    for name, listed in alike.items():
        if len(listed) > 1 and (report := reader(name).together(listed, runtime)):
            yield report


def _object(name: str, report: Report) -> dict[str, object]:
    checks: Sequence[dict[str, object]] = [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in report.checks]
    warnings = [{"code": w.code, "message": w.message} for w in report.warnings]
    return {
        "ok": report.ok, "kind": report.kind, "collective": report.collective, "ranks": report.ranks,
        "checks": checks, **({"warnings": warnings} if warnings else {}), **({"name": name} if name else {}),
    }  # fmt: skip


def _text(path: str, name: str, report: Report) -> str:
    """The failed checks whole, the others by name."""
    verdict = "verified" if report.ok else "WRONG"
    what = f"`{name}`, " if name else ""
    head = f"{path}: {verdict}: {what}{report.collective} on {report.ranks} ranks ({report.kind})\n"
    rows = [("ok" if check.ok else "FAILED", check.name, check.detail) for check in report.checks]
    return head + table(rows, indent="  ")
