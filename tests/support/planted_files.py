"""Changes to plant in emitted files, and files of every target to plant them in.

A planting takes a text and a source of chance, and returns the changed text with the place of the change: its offset
in the text as it was. Where a text has no place for a change, it returns the text as it was and -1.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import attrs
import one_sided_programs as puts
import programs
from built_programs import direct, ring
from counted_programs import counted, relayed

import collc as compiler
from collc.backends.base import Artifact, Target, Window
from collc.backends.chakra import Chakra
from collc.backends.graphviz import Dot
from collc.backends.ir_text import IrText
from collc.backends.mpi_c import MpiC
from collc.backends.msccl_xml import MscclXml
from collc.backends.mscclpp_json import MscclppJson
from collc.backends.nccl_graph import NcclGraph
from collc.backends.nccl_topo import NcclTopo
from collc.backends.nccl_tuner import NcclTuner
from collc.backends.oneccl_xml import OneCclXml
from collc.backends.report import HtmlReport
from collc.backends.svg import Svg
from collc.driver.accounts import account_of
from collc.ir.collective import KINDS, Collective
from collc.ir.diagnostic import CollcError
from collc.ir.graph.rooted import roots_of
from collc.ir.program import Program
from collc.ir.spec import Problem
from collc.ir.tuning import LARGEST, TunedRange, Tuning
from collc.ir.verify import Report
from collc.passes.one_sided.fit import FitOperations

__all__ = [
    "COMPARED",
    "PLANTINGS",
    "Case",
    "cases",
    "changed_numbers",
    "every_number",
    "plant_line_lost",
    "plant_line_twice",
    "plant_lines_swapped",
    "plant_number",
    "plant_truncation",
    "plant_word",
    "where",
]

_NUMBER = re.compile(r"[0-9]+")
_WORD = re.compile(r"[A-Za-z_]\w*")
Planted = tuple[str, int]

#: checks that hold a file against what was to be written; others find out from the file and the program alone
COMPARED = frozenset({"tables", "as written"})


# ---- changes


def every_number(text: str) -> list[int]:
    """Return where the numbers of a text begin, digits in words included."""
    return [found.start() for found in _NUMBER.finditer(text)]


def changed_numbers(text: str, position: int) -> Iterator[str]:
    """Yield the text with the number at a position changed: one more, one less, 0, another last digit, negative."""
    found = _NUMBER.match(text, position)
    assert found is not None
    number = int(found[0])
    for other in dict.fromkeys((number + 1, number - 1, 0, number ^ 1, number * 10 + 7, -number)):
        if str(other) != found[0]:
            yield text[:position] + str(other) + text[found.end() :]


def plant_number(text: str, luck: random.Random) -> Planted:
    """Change one number: one more, one less, 0, another digit, negative."""
    places = every_number(text)
    if not places:
        return text, -1
    position = luck.choice(places)
    return luck.choice(list(changed_numbers(text, position))), position


def _lines(text: str) -> tuple[list[str], list[int]]:
    """Return the lines of a text with their ends, and where they begin."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return lines, starts


def plant_line_lost(text: str, luck: random.Random) -> Planted:
    """Leave out one line."""
    lines, starts = _lines(text)
    if not lines:
        return text, -1
    at = luck.randrange(len(lines))
    return "".join(lines[:at] + lines[at + 1 :]), starts[at]


def plant_line_twice(text: str, luck: random.Random) -> Planted:
    """Write one line twice."""
    lines, starts = _lines(text)
    if not lines:
        return text, -1
    at = luck.randrange(len(lines))
    return "".join([*lines[: at + 1], *lines[at:]]), starts[at]


def plant_lines_swapped(text: str, luck: random.Random) -> Planted:
    """Exchange two lines that differ, neighbours or not."""
    lines, starts = _lines(text)
    places = [at for at in range(len(lines) - 1) if lines[at] != lines[at + 1]]
    if not places:
        return text, -1
    at = luck.choice(places)
    other = luck.choice([at + 1, *[k for k in [luck.randrange(len(lines))] if lines[k] != lines[at]]])
    lines[at], lines[other] = lines[other], lines[at]
    return "".join(lines), starts[min(at, other)]


def plant_truncation(text: str, luck: random.Random) -> Planted:
    """Cut off the end."""
    if not text:
        return text, -1
    at = luck.randrange(len(text))
    return text[:at], at


def plant_word(text: str, luck: random.Random) -> Planted:
    """Change one word: another of the text, or with a letter more, less or changed."""
    words = [(found.start(), found[0]) for found in _WORD.finditer(text)]
    if not words:
        return text, -1
    at, word = luck.choice(words)
    others = [luck.choice(words)[1], word + "x", word[:-1], word.swapcase(), word[:-1] + "q"]
    other = luck.choice([one for one in others if one != word])
    return text[:at] + other + text[at + len(word) :], at


PLANTINGS: dict[str, Callable[[str, random.Random], Planted]] = {
    "number": plant_number, "line lost": plant_line_lost, "line twice": plant_line_twice,
    "lines swapped": plant_lines_swapped, "truncated": plant_truncation, "word": plant_word,
}  # fmt: skip


def where(text: str, position: int) -> str:
    """Return the table, attribute or line that a place of a text is in."""
    line = text[text.rfind("\n", 0, position) + 1 :].split("\n", 1)[0]
    table = re.search(r"static const \w+ (\w+)\[\] = \{[^}]*\Z", text[:position])
    attribute = re.search(r'(\w+)="[^"]*\Z', text[text.rfind("\n", 0, position) + 1 : position])
    found = table or attribute
    return found[1] if found else line.strip()


# ---- files


@attrs.frozen(eq=False)
class Case:
    """Files of a target, as they were emitted, and how the target judges them."""

    name: str
    target: Target
    files: tuple[Artifact, ...]
    judge: Callable[[Sequence[Artifact]], Report] = attrs.field(repr=False)

    def refusal(self, number: int, text: str, *, compared: bool = True) -> str:
        """Return why the target refuses the files with another text in one of them; nothing where it does not.

        Without ``compared`` what is compared with the text that was to be written does not count.
        """
        files = list(self.files)
        files[number] = attrs.evolve(files[number], text=text)
        try:
            report = self.judge(files)
        except CollcError as problem:
            return str(problem)
        failed = [c for c in report.failed if compared or c.name not in COMPARED]
        return f"{failed[0].name}: {failed[0].detail}" if failed else ""


def _named(program: Program, name: str) -> Program:
    return attrs.evolve(program, name=name)


def _single(name: str, target: Target, ir: object) -> Case:
    return Case(name, target, tuple(target.emit(ir)), lambda files: target.check(ir, files))


def _windows(*programs: Program) -> list[tuple[Window, Program]]:
    """Return programs of one collective for growing sizes."""
    ends = [4096 * 10**k - 1 for k in range(len(programs) - 1)]
    lows, highs = [1, *(end + 1 for end in ends)], [*ends, None]
    return [
        (Window(f"number {k}, {program.scheduler}", low, high, f"from-{low}"), program)
        for k, (low, high, program) in enumerate(zip(lows, highs, programs, strict=True))
    ]


@cache
def compiled(net: str, collective: str, schedule: str = "", level: int = 2, target: str = "ir") -> Program:
    """Return the program that a collective on a network becomes."""
    text = f"topology t = {net}; collective c = {collective};" + (f" schedule c using {schedule};" if schedule else "")
    return compiler.compile_source(text, target=target, level=level).program


def _mpi_c() -> Iterator[Case]:
    for kind in KINDS:
        yield _single(f"mpi-c {kind}", MpiC(), direct(kind, 3, 2, root=0))
    packed = compiled("torus(8)", "allgather on t { size: 1 KiB }", "swing", target="mpi-c")
    pipelined = compiled("dgx_a100(1)", "allreduce on t", "forest { k: auto }", target="mpi-c")
    assert packed.scratch.max() > 0
    yield _single("mpi-c packed", MpiC(function="rows"), packed)
    yield _single("mpi-c forest", MpiC(), pipelined)
    for level in (0, 2):
        yield _single(f"mpi-c -O{level}", MpiC(), compiled("torus(3, 2)", "allreduce on t", "bfb", level, "mpi-c"))
    yield _single("mpi-c alltoall", MpiC(), compiled("hypercube(2)", "alltoall on t", "flow", target="mpi-c"))
    yield _single("mpi-c wide", MpiC(), programs.broadcast_chain(130))
    yield _single("mpi-c unfused", MpiC(), programs.ring_allreduce(3, 2, fused=False))
    twice = compiled("torus(6)", "allreduce on t { op: max }", "swing { variant: latency, fold: false }")
    for kind in ("reduce-scatter", "reduce", "broadcast"):
        root = "" if kind == "reduce-scatter" else " { root: 1 }"
        yield _single(f"mpi-c bfb {kind}", MpiC(), compiled("biring(4)", f"{kind} on t{root}", "bfb", target="mpi-c"))
    yield _single("mpi-c twice", MpiC(), twice)
    yield _single("mpi-c alltoallv", MpiC(), relayed("alltoall", 3, 2))
    sums = _windows(direct("allreduce", 3), ring("allreduce", 3), compiled("biring(3)", "allreduce on t", "ring"))
    yield Case(
        "mpi-c selected", MpiC(), tuple(MpiC().emit_selected(sums)), lambda files: MpiC().check_selected(sums, files)
    )
    for target in (MpiC(library="pod"), MpiC(interpose=True, min_bytes=64, max_bytes=1 << 20)):
        rows = _windows(_named(direct("allgather", 4), "rows"), _named(ring("allgather", 4), "rows"))
        made = [
            target.emit(_named(packed, "packed"))[0], target.emit_selected(rows)[0],
            target.emit(_named(direct("reduce", 3, 2, root=2), "wait"))[0],
        ]  # fmt: skip
        if target.library:
            made += [target.emit(relayed("gather", 3))[0], target.emit(counted(ring("reduce-scatter", 3)))[0]]
        yield _joined("library" if target.library else "interposed", target, made)
    roots = roots_of("news", compiler.topology("mesh(3)"), range(3))
    plans = [compiled("mesh(3)", f"broadcast on t {{ root: {root} }}", "bine") for root in roots.planned]
    for target in (MpiC().for_roots(roots, 0), MpiC(interpose=True).for_roots(roots, 0)):
        yield _joined("interposed roots" if target.interpose else "roots", target, [target.emit(p)[0] for p in plans])


def _joined(name: str, target: MpiC, made: list[Artifact]) -> Case:
    return Case(f"mpi-c {name}", target, tuple(target.join(made)), lambda files: target.check_joined(made, files))


def _msccl() -> Iterator[Case]:
    yield _single("msccl-xml ring", MscclXml(), programs.ring_allreduce(3, 2))
    yield _single("msccl-xml pairs", MscclXml(runtime="msccl", nthreads=256), programs.allpairs_allreduce(4))
    yield _single("msccl-xml doubling", MscclXml(runtime="rccl"), programs.recursive_doubling_allgather(4))
    yield _single("msccl-xml alltoall", MscclXml(proto="LL", min_bytes=64, max_bytes=1 << 20), programs.alltoall(3))
    yield _single("msccl-xml sums", MscclXml(algorithm="mine"), direct("reduce-scatter", 3, 2))
    program = compiled("torus(3, 2)", "allreduce on t", "bfb", target="msccl-xml")
    yield _single("msccl-xml bfb", MscclXml(inplace=True, outofplace=False), program)


def _oneccl() -> Iterator[Case]:
    yield _single("oneccl-xml ring", OneCclXml(), programs.ring_allreduce(3, 2))
    yield _single(
        "oneccl-xml threads", OneCclXml(threads=3, lanes=2, min_bytes=8, max_bytes=1 << 30), direct("alltoall", 3)
    )
    yield _single("oneccl-xml reduce", OneCclXml(algorithm="mine", inplace=False), direct("reduce", 3, 2, root=1))
    yield _single("oneccl-xml bfb", OneCclXml(), compiled("torus(3, 2)", "allgather on t", "bfb", target="oneccl-xml"))


def _ir() -> Iterator[Case]:
    yield _single("ir program", IrText(), programs.ring_allreduce(3, 2))
    yield _single("ir packed", IrText(), compiled("torus(8)", "allgather on t { size: 1 KiB }", "swing"))
    for name, using in (("schedule", "bfb"), ("forest", "forest { k: auto }")):
        text = f"topology t = torus(3, 2); collective c = allreduce on t; schedule c using {using};"
        made = compiler.compile_source(text, target="ir{level=schedule}").collectives["c"]
        yield _single(f"ir {name}", IrText(level="schedule"), made.forest or made.schedule)


def _nccl() -> Iterator[Case]:
    ranges = (TunedRange(0, 4095, "tree", "ll"), TunedRange(4096, 65535, "ring", "ll128"))
    tuning = Tuning("c", Collective("allreduce", 16), 2, (*ranges, TunedRange(65536, LARGEST, "ring", "simple")))
    yield _single("nccl-tuner example", NcclTuner(channels=8), tuning)
    yield _single("nccl-tuner ncclx", NcclTuner(dialect="ncclx"), tuning)
    gpus, nics = (" ".join(f"{first + k:04x}:00:00.0" for k in range(8)) for first in (1, 0x101))
    topo = NcclTopo(gpu_ids=gpus, nic_ids=nics, numa="1 1 0 0 3 3 2 2", cpu="intel", affinity="f f0 f00 f000")
    yield _single("nccl-topo", topo, Problem(compiler.topology("dgx_a100(2)"), Collective("allreduce", 16)))


def _nccl_graph() -> Iterator[Case]:
    for name, net, target in (
        ("box", "mi300x(1)", NcclGraph(channels=7)), ("nodes", "dgx_a100(2)", NcclGraph(nccl="2.30", ranks=True)),
        ("decimal", "mi250(1)", NcclGraph(nccl="2.18", channels=6)),
    ):  # fmt: skip
        made = compiler.compile_source(
            f"topology t = {net}; collective c = allreduce on t; schedule c using nccl-rings;"
        )
        found = made.collectives["c"]
        yield _single(f"nccl-graph {name}", target, found.forest or found.schedule)


def _report() -> Iterator[Case]:
    text = "topology t = biring(3); collective c = allgather on t; schedule c using ring;"
    found = account_of(compiler.compile_source(text).collectives["c"])
    yield _single("report ring", HtmlReport(), found)


def _pictures() -> Iterator[Case]:
    for name, text in (
        ("ring", "topology t = biring(3); collective c = allgather on t; schedule c using ring;"),
        ("trees", "topology t = torus(3, 2); collective c = allreduce on t; schedule c using forest;"),
    ):
        found = account_of(compiler.compile_source(text).collectives["c"])
        yield _single(f"svg {name}", Svg(), found)
        yield _single(f"dot {name}", Dot(), found)


def _chakra() -> Iterator[Case]:
    yield _single("chakra ring", Chakra(), programs.ring_allreduce(3, 2))
    yield _single("chakra alltoall", Chakra(size=1 << 16), direct("alltoall", 3))
    yield _single("chakra bfb", Chakra(), compiled("torus(3, 2)", "allreduce on t", "bfb", target="chakra"))


def _mscclpp() -> Iterator[Case]:
    target = MscclppJson(inplace=True)
    yield _single("mscclpp-json ring", target, puts.ring(3))
    yield _single("mscclpp-json packets", MscclppJson(inplace=True, max_bytes=1 << 20), puts.ring_of_packets(4))
    yield _single("mscclpp-json cut", target, FitOperations(max_operations=12).run(puts.ring(3)))


@cache
def cases() -> tuple[Case, ...]:
    """Return files of every target, for several collectives, networks and options."""
    return (
        *_mpi_c(),
        *_msccl(),
        *_oneccl(),
        *_ir(),
        *_nccl(),
        *_nccl_graph(),
        *_mscclpp(),
        *_report(),
        *_pictures(),
        *_chakra(),
    )
