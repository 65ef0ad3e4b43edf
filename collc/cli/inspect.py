"""``collc check`` and ``collc verify``: say whether a file is right, make nothing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from collc.ir.verify import Report

from ..compilation import load_spec, make_jobs, read_ir, sniff
from ..verification import verify_spec, verify_text
from .console import Console
from .inputs import loading, read
from .table import table

__all__ = ["check", "verify"]


def check(options: SimpleNamespace, console: Console) -> int:
    """Parse and elaborate a file; say what it declares."""
    text, name = read(options.files[0], console)
    spec = read_ir(text, name)[0] if sniff(text) == "ir" else load_spec(text, name, loading(options))
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
    """Execute files symbolically and print every check; return 0 where all hold, else 1.

    Several MSCCL-XML files are held against each other too.
    """
    texts = [read(path, console) for path in options.files]
    console.progress("verifying")
    found = [(name, *one) for text, name in texts for one in _verify(text, name, options, console)]
    if len(texts) > 1 and (together := _together(texts, options.runtime)):
        found.append(("together", "", together))
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
    """Return the reports on one file, each with the name of its collective where the file has names for them."""
    if sniff(text) == "coll" and options.runtime is None and options.multiprocessors is None:
        spec = load_spec(text, name, loading(options))
        console.warn(spec.warnings)
        only = options.collective
        names = [n for n in spec.collectives if not only or n in only]
        return list(zip(names, verify_spec(spec, only), strict=False))
    told, runtime, places = next(iter(options.collective), None), options.runtime, options.multiprocessors
    return [("", verify_text(text, name, runtime=runtime, multiprocessors=places, collective=told))]


def _together(texts: Sequence[tuple[str, str]], runtime: str | None) -> Report | None:
    """Return what holds of the MSCCL-XML files among several as files for one loader; of one, nothing."""
    from collc.backends.oneccl_xml import is_oneccl

    xml = [(text, name) for text, name in texts if sniff(text) == "xml" and not is_oneccl(text)]
    if len(xml) < 2:
        return None
    from collc.backends.msccl_xml.bundle import Member, check_together
    from collc.backends.msccl_xml.reader import read as read_algorithm

    members = [Member(name, read_algorithm(text, name)) for text, name in xml]
    kinds = ", ".join(dict.fromkeys(member.algorithm.coll for member in members))
    ranks = max(member.algorithm.ngpus for member in members)
    return Report("msccl-xml", kinds, ranks, tuple(check_together(members, runtime)))


def _object(name: str, report: Report) -> dict[str, Any]:
    checks: Sequence[dict[str, Any]] = [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in report.checks]
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
