"""Part (a): texts of every kind that collc reads. The answer to each is right, or a clear refusal, and comes soon."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from program_judge import judge_program, judge_schedule

from .answers import Answer, Servant, command
from .findings import Finding, minimal
from .specs import specification
from .texts import Seed, changed, derived, seeds

__all__ = ["ask", "grammar", "judged", "mutations", "replay", "smallest", "specifications"]

#: more nodes than these make right texts slow, and nothing wrong
_NODES = ("--node-limit", "48")
#: kind -> the verbs that read it, with options; {} is the file
_VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "coll": (
        ("check", "{}", *_NODES), ("check", "{}", *_NODES), ("check", "--json", "{}", *_NODES), ("format", "{}"),
        ("compile", "{}", "-o", "out/", *_NODES), ("cost", "{}", *_NODES), ("verify", "{}", *_NODES),
    ),
    "xml": (
        ("verify", "{}", *_NODES), ("verify", "--json", "{}", *_NODES),
        ("verify", "--runtime", "msccl", "{}", *_NODES), ("verify", "--runtime", "rccl", "{}", *_NODES),
        ("convert", "{}", "-t", "msccl-xml{runtime=executor}", "-o", "out/"),
        ("convert", "{}", "-t", "mpi-c", "-o", "out/"), ("env", "{}"), ("simulate", "{}", *_NODES),
    ),
    "ir": (
        ("verify", "{}", *_NODES), ("cost", "{}", *_NODES),
        ("compile", "{}", "-t", "msccl-xml", "-o", "out/", *_NODES),
        ("compile", "{}", "-t", "ir", "-o", "out/", *_NODES), ("compile", "{}", "-t", "mpi-c", "-o", "out/", *_NODES),
    ),
    "measured": (("calibrate", "{}"), ("calibrate", "{}", "--json"), ("calibrate", "{}", "--classes", "auto")),
    "database": (
        ("find", "-n", "8", "-d", "3", "--database", "{}"),
        ("find", "-n", "8", "-d", "3", "-j", "1", "--database", "{}", "--check"),
    ),
}  # fmt: skip
_DONE = (0, 1, 2, 3)
#: verbs that write what they can of several inputs or collectives, and then say what failed; or a table of what failed
_PARTLY = ("convert", "cost", "simulate", "format", "check", "verify")
#: transfers of a schedule that plain lists carry in a second
_MOST_TRANSFERS = 20_000


def judged(answer: Answer, arguments: Sequence[str]) -> str:
    """Return what is wrong with an answer of the command; empty if it is right."""
    if answer.broken:
        return answer.broken
    status, out, err, left = answer.value
    if "Traceback" in err or "Traceback" in out:
        return "prints a traceback"
    if status not in _DONE:
        reason = re.search(r"error: (.*)", err)
        return f"exit status {status}: {reason[1] if reason else ''}"
    if status and not (err.strip() or out.strip()):
        return f"exit status {status} and no word"
    if status and left and arguments[0] not in _PARTLY and not any(name.startswith("collc-crash") for name in left):
        return f"exit status {status} and files left: {', '.join(left)}"
    if re.search(r"(?i)needs more memory than there is|\[C0023\]", err):
        return "takes more memory than there is"
    return ""


def ask(servant: Servant, arguments: Sequence[str], text: str, suffix: str) -> str:
    """Return what is wrong with collc's answer to a text."""
    name = f"input{suffix}"
    words = [name if word == "{}" else word for word in arguments]
    return judged(servant.ask(command, words, {name: text}), arguments)


_servant = Servant()


def _found(case: str, arguments: Sequence[str], text: str, suffix: str) -> list[Finding]:
    """Ask once; return a finding with the smallest text that shows the like of it."""
    wrong = ask(_servant, arguments, text, suffix)
    if not wrong:
        return []
    small = smallest(text, wrong, lambda t: ask(_servant, arguments, t, suffix))
    return [Finding(case, f"collc {' '.join(arguments)}: {wrong}", small, suffix)]


def smallest(text: str, wrong: str, judge: Callable[[str], str]) -> str:
    """Return the smallest text found that is judged alike; one that takes long is kept as it is."""

    def like(what: str) -> str:
        return re.sub(r"\d+", "#", what)[:60]

    return text if wrong.startswith("takes more") else minimal(text, lambda t: like(judge(t)) == like(wrong))


def mutations(seed: int, number: int) -> list[Finding]:
    """Try a changed text of any kind."""
    luck = random.Random(f"mutations {seed} {number}")
    kind = luck.choice(("coll", "coll", "xml", "xml", "ir", "measured", "database"))
    origin: Seed = luck.choice([one for one in seeds() if one.kind == kind])
    text = changed(origin, luck)
    return _found(f"mutations:{number}", luck.choice(_VERBS[kind]), text, origin.suffix)


def grammar(seed: int, number: int) -> list[Finding]:
    """Try a text that the grammar allows."""
    luck = random.Random(f"grammar {seed} {number}")
    return _found(f"grammar:{number}", luck.choice(_VERBS["coll"]), derived(luck), ".coll")


# ---- specifications that mean something: their results are executed by the independent interpreter


def specifications(seed: int, number: int) -> list[Finding]:
    """Compile a specification for its targets; execute the results by other means, compare costs and bounds."""
    luck = random.Random(f"specifications {seed} {number}")
    text = specification(luck)

    def wrong(candidate: str) -> str:
        answer = _servant.ask(_compiled, candidate, number)
        return answer.broken or answer.value

    found = wrong(text)
    if not found:
        return []
    return [Finding(f"specifications:{number}", found, smallest(text, found, wrong), ".coll")]


def _compiled(text: str, seed: int) -> str:
    """Compile a text; return what is wrong with the result."""
    import collc
    from collc.ir.program import Program
    from collc.ir.schedule import Schedule

    try:
        result = collc.compile_source(text, node_limit=48)
    except collc.CollcError as problem:
        if problem.exit_status not in _DONE:
            return f"exit status {problem.exit_status}: {problem.diagnostics[0].message[:200]}"
        if any(d.code == "C0023" for d in problem.diagnostics):
            return "takes more memory than there is"
        return ""
    for one in result.collectives.values():
        if isinstance(one.program, Program) and (wrong := judge_program(one.program, 2, seed)):
            return f"the program of `{one.name}` is wrong: {wrong}"
        short = isinstance(one.schedule, Schedule) and len(one.schedule) < _MOST_TRANSFERS
        if short and (wrong := judge_schedule(one.schedule, seed)):
            return f"the schedule of `{one.name}` is wrong: {wrong}"
        cost = one.cost
        trees = cost.tree_bound.value if one.forest is not None and cost.tree_bound is not None else None
        per_byte = cost.time_per_byte
        for reached, bound in ((cost.T_B, cost.T_B_bound), (per_byte, cost.time_per_byte_bound), (per_byte, trees)):
            if reached is not None and bound is not None and reached < bound:
                return f"the bound {bound} of `{one.name}` is beaten: {reached}"
    return ""


# ---- the corpus


def replay(text: str, suffix: str) -> list[str]:
    """Return what is wrong with the answers of all verbs that read a kept text."""
    kind = {".coll": "coll", ".xml": "xml", ".ir": "ir", ".csv": "measured", ".txt": "database"}[suffix]
    found = [f"{' '.join(verb)}: {wrong}" for verb in _VERBS[kind] if (wrong := ask(_servant, verb, text, suffix))]
    if suffix == ".coll":
        answer = _servant.ask(_compiled, text, 0)
        found += [wrong for wrong in (answer.broken or answer.value,) if wrong]
    return found
