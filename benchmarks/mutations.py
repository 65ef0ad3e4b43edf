"""Random single faults in right files of a runtime: is every harmful one refused, and no right file?

    python benchmarks/mutations.py [--format msccl-xml|mscclpp-json] [--faults 1000] [--seed 1] [--runs 40]
        [--small] [--more] [--switches]

Plants one fault at a time (an offset, a count, a peer, the order of two steps, a wait or flag, a step's type, a
channel; with ``--more`` also others, and two at once) in files that collc makes of rings, recursive doubling, all
pairs, breadth-first broadcast, forests and swing, for every runtime and for two protocols, and in files arranged as
those of others are. Verification judges each; so does brute force (tests/support/msccl_judge.py), which knows nothing
of the verifier: it moves numbers through finite FIFOs in random orders, at several sizes. An accepted file is run
``--runs`` times. A fault that brute force shows to be harmful and that verification accepts is *missed*: there must be
none. *Strict* are faults refused although no run went wrong: what the runtimes' parsers or documents do not promise,
and what only rare timing brings out. *Harmless* are accepted: attributes that no parser reads, such as the other end's
place in a send.

With ``--format mscclpp-json`` the files are plans of MSCCL++, written by hand and compiled, the faults those of
tests/support/plan_faults.py, and brute force (tests/support/plan_judge.py) runs the JSON thread by thread over three
launches. ``--switches`` leaves the plans with operations of switches.
Folders of two plans that one process must not load count as faults too.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import attrs
import msccl_faults
import msccl_judge
import plan_faults
import plan_judge
import programs
from msccl_published import PUBLISHED
from plan_texts import right_plans

import collc
from collc.backends import mscclpp_json
from collc.backends.msccl_xml import MscclXml, verify_text
from collc.backends.mscclpp_environment import plan_file, require_together
from collc.ir.diagnostic import CollcError

_RUNTIMES = ("executor", "msccl", "rccl")

#: topology, scheduler, collectives; those of the first group are small
_SMALL = (
    ("uniring(4)", "ring", ("allgather", "allreduce", "reduce-scatter")),
    ("torus(3,2)", "bfb", ("allgather", "allreduce", "reduce-scatter")),
    ("hypercube(3)", "bfb", ("allreduce",)),
    ("circulant(5,{1,2})", "bfb", ("allreduce", "allgather")),
    ("hypercube(2)", "recursive-doubling", ("allreduce",)),
    ("torus(4)", "swing", ("allreduce",)),
    ("complete(4)", "flow", ("alltoall",)),
    ("torus(2,2)", "forest", ("allreduce",)),
)
_LARGE = (
    ("torus(3,3,2)", "bfb", ("allreduce",)),
    ("hypercube(4)", "bfb", ("allgather", "allreduce")),
    ("dgx_a100(2)", "forest", ("allgather", "allreduce")),
    ("torus(4,4)", "swing", ("allreduce",)),
    ("uniring(8)", "ring", ("allreduce",)),
)
#: files as others arrange them, each for a runtime that takes it
_STRANGERS = (
    ("one pass", "rccl"), ("one pass, three ranks", "msccl"), ("rail", "executor"), ("hierarchical", "msccl"),
    ("tree", "executor"),
)  # fmt: skip


@attrs.frozen
class Case:
    """A right file and the runtime it is for."""

    name: str
    runtime: str
    text: str


def small_cases() -> list[Case]:
    """Return the files of programs written by hand and of small networks."""
    cases = []
    for k, program in enumerate(programs.by_hand()):
        for proto in ("Simple", "LL"):
            runtime = _RUNTIMES[k % 2]
            (artifact,) = MscclXml(runtime=runtime, proto=proto).emit(program)  # type: ignore[arg-type]
            cases.append(Case(f"{program.name} {proto}", runtime, artifact.text))
    cases += [Case(name, runtime, PUBLISHED[name]) for name, runtime in _STRANGERS]
    return cases + list(_compiled(_SMALL))


def _xml_cases(small: bool) -> list[Case]:
    """Return all MSCCL-XML files that faults are planted in."""
    return small_cases() + ([] if small else list(_compiled(_LARGE)))


#: the networks and schedulers of compiled plans, with the protocols; those of the first group are small
_PLANS = (
    ("uniring(3)", "ring", ("allreduce", "allgather")), ("hypercube(2)", "recursive-doubling", ("allreduce",)),
    ("complete(3)", "bfb", ("allreduce", "reduce-scatter")), ("complete(3)", "flow", ("alltoall",)),
)  # fmt: skip
_LARGE_PLANS = (("torus(3,2)", "bfb", ("allreduce",)), ("torus(4)", "swing", ("allreduce",)))


#: boxes with switches that multicast and reduce; GPUs of each; bandwidth of NVLinks; blocks that share an operation
_BOXES = (
    (1, 3, 450, 1, ("allreduce", "allgather", "broadcast", "reduce-scatter")), (1, 3, 450, 2, ("allreduce",)),
    (2, 3, 450, 1, ("allreduce",)), (2, 4, 50, 1, ("allreduce",)),
)  # fmt: skip


def _switch_cases() -> Iterator[Case]:
    """Yield plans with operations of switches."""
    for boxes, each, bandwidth, shares, kinds in _BOXES:
        fabric = "link gpu[b, g] <-> ib : 50 GB/s;" if boxes > 1 else ""
        text = (
            f"topology t {{ rank gpu[{boxes}, {each}]; switch nv[{boxes}] : multicast, reduces; "
            f"{'switch ib; ' if boxes > 1 else ''}"
            f"for b in 0..{boxes}, g in 0..{each} {{ link gpu[b, g] <-> nv[b] : {bandwidth} GB/s; {fabric} }} }}\n"
        )
        for kind in kinds:
            root = " { root: 0 }" if kind == "broadcast" else ""
            source = f"{text}collective c = {kind} on t{root};\nschedule c using forest;\n"
            result = collc.compile_source(source, target=f"mscclpp-json{{ranks-per-node={each}, shares={shares}}}")
            plan = json.dumps(json.loads(result.artifacts["c"].text))
            yield Case(f"forest {kind} on {boxes} boxes of {each}, {shares} shares", "mscclpp", plan)


def _plan_cases(small: bool) -> list[Case]:
    """Return all plans that faults are planted in."""
    found = [Case(name, "mscclpp", json.dumps(plan)) for name, plan in right_plans().items()]
    for topology, scheduler, kinds in _PLANS if small else _PLANS + _LARGE_PLANS:
        for kind in kinds:
            text = f"topology t = {topology};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n"
            for proto in ("Simple", "LL"):
                result = collc.compile_source(text, target=f"mscclpp-json{{protocol={proto}}}")
                plan = json.dumps(json.loads(result.artifacts["c"].text))  # as faults are written
                found.append(Case(f"{scheduler} {kind} on {topology}, {proto}", "mscclpp", plan))
    return found + list(_switch_cases())


def _compiled(table: Sequence[tuple[str, str, tuple[str, ...]]]) -> Iterator[Case]:
    for topology, scheduler, kinds in table:
        for kind in kinds:
            text = f"topology t = {topology};\ncollective c = {kind} on t;\nschedule c using {scheduler};\n"
            for runtime in _RUNTIMES:
                result = collc.compile_source(text, target=f"msccl-xml{{runtime={runtime}}}")
                yield Case(f"{scheduler} {kind} on {topology}", runtime, result.artifacts["c"].text)


# ---- judgement


@attrs.frozen
class Format:
    """How files of a format are judged: ``plant`` a fault, ``verify``, and run them by brute force (``judge``)."""

    cases: Callable[[bool], list[Case]]
    kinds: tuple[str, ...]
    more: tuple[str, ...]
    plant: Callable[[str, str, random.Random], str]
    verify: Callable[[Case, str], collc.ir.verify.Report]
    judge: Callable[[Case, str, int, int], str]
    judge_right: Callable[[Case, int], str]

    def refused(self, case: Case, text: str) -> str:
        """Return the first check that refuses a text; empty if all pass."""
        try:
            report = self.verify(case, text)
        except CollcError as problem:
            return problem.diagnostics[0].code
        return "" if report.ok else report.failed[0].name


def _planted_plan(text: str, kind: str, luck: random.Random) -> str:
    return json.dumps(plan_faults.plant(json.loads(text), kind, luck))


FORMATS = {
    "msccl-xml": Format(
        _xml_cases, msccl_faults.KINDS, msccl_faults.MORE, msccl_faults.plant,
        lambda case, text: verify_text(text, runtime=case.runtime),
        lambda case, text, runs, seed: msccl_judge.judge(text, case.runtime, runs, seed=seed),
        lambda case, runs: (
            msccl_judge.judge(case.text, case.runtime, runs) or msccl_judge.every_split(case.text, case.runtime)
        ),
    ),
    "mscclpp-json": Format(
        _plan_cases, plan_faults.KINDS, (), _planted_plan,
        lambda case, text: mscclpp_json.verify_text(text),
        lambda case, text, runs, seed: plan_judge.judge(json.loads(text), runs, seed=seed),
        lambda case, runs: plan_judge.judge(json.loads(case.text), 10 * runs),
    ),
}  # fmt: skip


@attrs.define
class Outcome:
    """Counts by kind of fault and what became of it, by check that refused it; what was missed in full."""

    fates: Counter[tuple[str, str]] = attrs.Factory(Counter)
    checks: Counter[str] = attrs.Factory(Counter)
    missed: list[tuple[Case, str, str]] = attrs.Factory(list)  # file, faulty text, what goes wrong

    def total(self, fate: str) -> int:
        return sum(count for (_, f), count in self.fates.items() if f == fate)


def placed(of: Format, files: Sequence[Case], kinds: Sequence[str], tries: int = 20) -> list[str]:
    """Return the kinds of faults that some file has a place for."""
    lucks = [random.Random(seed) for seed in range(tries)]
    return [k for k in kinds if any(of.plant(one.text, k, luck) != one.text for luck in lucks for one in files)]


def survey(of: Format, files: Sequence[Case], faults: int, seed: int, runs: int, kinds: Sequence[str]) -> Outcome:
    """Plant ``faults`` faults and judge each twice; the same numbers for the same arguments.

    Some file must have a place for each of the ``kinds``.
    """
    luck, outcome = random.Random(seed), Outcome()
    planted = 0
    while planted < faults:
        case, kind = luck.choice(files), kinds[planted % len(kinds)]
        text = of.plant(case.text, kind, luck)
        if text == case.text:
            continue
        planted += 1
        check = of.refused(case, text)
        problem = of.judge(case, text, 6 if check else runs, planted)
        fate = ("caught" if problem else "strict") if check else "missed" if problem else "harmless"
        outcome.fates[kind, fate] += 1
        if check:
            outcome.checks[check] += 1
        if fate == "missed":
            outcome.missed.append((case, text, problem))
    return outcome


def false_alarms(of: Format, files: Sequence[Case], runs: int) -> list[str]:
    """Return which right files are refused, and which brute force finds wrong, at any split factor they allow."""
    alarms = [f"{case.name} for {case.runtime}: {check}" for case in files if (check := of.refused(case, case.text))]
    found = [(case, of.judge_right(case, runs)) for case in files]
    return alarms + [f"{case.name} for {case.runtime}: brute force: {problem}" for case, problem in found if problem]


def folders(files: Sequence[Case]) -> list[str]:
    """Return which folders of two plans are judged wrongly: the pairs of tests/support/plan_faults.py."""
    wrong = []
    for case in files:
        for problem, plans in plan_faults.conflicts(json.loads(case.text)):
            try:
                require_together([plan_file(f"{k}.json", json.dumps(plan)) for k, plan in enumerate(plans)])
                accepted = True
            except CollcError:
                accepted = False
            if accepted != (not problem) or bool(plan_judge.judge_folder(plans)) != bool(problem):
                wrong.append(f"folder of {case.name}: {problem or 'right'}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--small", action="store_true", help="only the small files")
    parser.add_argument("--switches", action="store_true", help="only plans with operations of switches")
    parser.add_argument("--more", action="store_true", help="faults of declared chunks, of attributes, two at once")
    parser.add_argument("--show", type=Path, help="write the files of missed faults here")
    parser.add_argument("--format", choices=sorted(FORMATS), default="msccl-xml")
    options = parser.parse_args()
    start, of = time.perf_counter(), FORMATS[options.format]
    files = list(_switch_cases()) if options.switches else of.cases(options.small)
    alarms = false_alarms(of, files, 4)
    if options.format == "mscclpp-json":
        alarms += folders(files)
    print(f"{len(files)} right files: {len(alarms)} false alarms")
    for alarm in alarms:
        print(f"  {alarm}")
    every = of.kinds + of.more if options.more else of.kinds
    kinds = placed(of, files, every)
    if len(kinds) < len(every):
        print(f"no file has a place for: {', '.join(kind for kind in every if kind not in kinds)}")
    outcome = survey(of, files, options.faults, options.seed, options.runs, kinds)
    fates = ("caught", "missed", "strict", "harmless")
    print(f"{'fault':<12}" + "".join(f"{fate:>10}" for fate in fates))
    for kind in kinds:
        print(f"{kind:<12}" + "".join(f"{outcome.fates[kind, fate]:>10}" for fate in fates))
    print(f"{'all':<12}" + "".join(f"{outcome.total(fate):>10}" for fate in fates))
    print("refused by: " + ", ".join(f"{name} {count}" for name, count in outcome.checks.most_common()))
    for n, (case, text, problem) in enumerate(outcome.missed):
        print(f"missed: {case.name} for {case.runtime}: {problem}")
        if options.show:
            options.show.mkdir(parents=True, exist_ok=True)
            (options.show / f"missed{n}.{options.format.split('-')[1]}").write_text(text)
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if outcome.missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
