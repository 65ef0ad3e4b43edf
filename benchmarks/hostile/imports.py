"""Part (a), ``imports``: damaged files of machines and fabrics, imported by the command and by the language."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import attrs
from mutated import mutations

from .answers import Answer, Servant, command
from .findings import Finding
from .fuzzing import judged, smallest

__all__ = ["imports", "wrong_answer"]

_CASES = Path(__file__).resolve().parent.parent.parent / "tests" / "cases" / "import"
_FIGURES = (
    "--gpu", "a100", "--nic", "200Gbps", "--size", "1MB", "--node-limit", "400", "--tier-bandwidth",
    "leaf=400Gbps,spine=800Gbps,core=1600Gbps,block=400Gbps,fabric=800Gbps,ring=100Gbps,torus=100Gbps,link=10Gbps",
)  # fmt: skip
_GIVEN = (
    "gpu: a100, nic: 200 Gbps, size: 1 MB, tier-leaf: 400 Gbps, tier-spine: 800 Gbps, tier-core: 1600 Gbps, "
    "tier-block: 400 Gbps, tier-fabric: 800 Gbps, tier-ring: 100 Gbps, tier-torus: 100 Gbps, tier-link: 10 Gbps"
)
_LIMIT = 400
_MACHINES = ("node.xml", "hwloc.xml", "nvidia.txt", "taccl.json", "hints.xml", "tiny.json", "quad.dot", "graph.graphml")
_FABRICS = ("fabric.txt", "rail0.txt", "topology.conf", "topology.yaml", "tree.topo", "relative.dot", "fabric_hca.txt")
_HOSTS = ("n[000-001]", "n001", "n[1-2]", "n1,n2", "host[0-3]", "n[000-")
#: seconds of the processor that a file of a few KB may take
_SECONDS = 10


@attrs.frozen
class _Case:
    """Files by name, the one that is damaged, and words of the command after `import`; joined or alone."""

    files: dict[str, str]
    damaged: str
    words: tuple[str, ...]
    language: str


@cache
def _texts() -> dict[str, str]:
    """Return the files of the golden cases, and texts of the generators of tests, by name."""
    import hwloc_files
    import infiniband
    import nccl_files
    import smi_texts

    found = {
        path.name: path.read_text() for path in sorted(_CASES.iterdir()) if path.suffix not in (".coll", ".expect")
    }
    return found | {
        "ring.xml": nccl_files.ring_box(), "switched.xml": hwloc_files.switched_box(4, 2),
        "ports.txt": infiniband.two_tiers().listed(), "chassis.txt": infiniband.two_tiers().text(grouped=True),
        "blanks.txt": smi_texts.matrix(smi_texts.hgx(4), "blanks"),
        "amd_old.json": smi_texts.amd_json(4, smi_texts.mesh(), old=True),
        "amd.csv": smi_texts.amd_csv(4, smi_texts.mesh()),
    }  # fmt: skip


def _drawn(luck: random.Random) -> _Case:
    texts = _texts()
    name = luck.choice(list(texts))
    joined = luck.random() < 0.4
    files = {name: next(mutations([texts[name]], 1, luck.randrange(1 << 30)))}
    if not joined:
        return _Case(files, name, (name,), f'import "{name}" as network with {{ {_GIVEN} }};\n')
    machine, fabric = (luck.choice(_MACHINES), name) if luck.random() < 0.5 else (name, luck.choice(_FABRICS))
    for other in (machine, fabric):
        files.setdefault(other, texts[other])
    hosts = luck.choice((None, None, *_HOSTS))
    nics = luck.choice((None, None, "*", "mlx5_*", "nic*"))
    words = [machine, "--fabric", fabric, *(["--hosts", hosts] if hosts else []), *(["--nics", nics] if nics else [])]
    options = [*([f'hosts: "{hosts}"'] if hosts else []), *([f'nic: "{nics}"'] if nics else [])]
    language = "".join(
        f'import "{path}" as {part} with {{ {_GIVEN} }};\n' for path, part in ((machine, "box"), (fabric, "hosts"))
    )
    return _Case(files, name, tuple(words), f"{language}cluster network = box on hosts {{ {', '.join(options)} }};\n")


def imports(seed: int, number: int) -> list[Finding]:
    """Import a damaged file; the command and the language must agree, and the file is read back."""
    case = _drawn(random.Random(f"imports {seed} {number}"))
    wrong = wrong_answer(case)
    if not wrong:
        return []
    text = smallest(case.files[case.damaged], wrong, lambda text: wrong_answer(_with(case, text)))
    about = f"collc import {' '.join(case.words)} (damaged: {case.damaged})"
    return [Finding(f"imports:{number}", f"{about}: {wrong}", text, Path(case.damaged).suffix)]


def _with(case: _Case, text: str) -> _Case:
    return attrs.evolve(case, files={**case.files, case.damaged: text})


_servant = Servant()


def wrong_answer(case: _Case) -> str:
    """Return what is wrong with the answers to a case; empty if they are right."""
    words = ("import", *case.words, *_FIGURES, "--name", "network", "-o", "out.coll")
    answer = _servant.ask(_both, words, case.files, case.language)
    if answer.broken:
        return answer.broken
    by_command, by_language, seconds, differs = answer.value
    return (
        judged(Answer(by_command), words) or judged(Answer(by_language), ("check",))
        or (f"takes {seconds:.0f} s of processor time" if seconds > _SECONDS else "")
        or _disagreement(by_command, by_language) or differs
    )  # fmt: skip


Ran = tuple[int, str, str, dict[str, str]]


def _both(words: Sequence[str], files: dict[str, str], language: str) -> tuple[Ran, Ran, float, str]:
    """Return the answers of the command and of the language, the seconds of the processor, and how results differ."""
    begun = time.process_time()
    by_command = command(words, files)
    with_main = {**files, "main.coll": language}
    by_language = command(["check", "--node-limit", str(_LIMIT), "main.coll"], with_main)
    spent = time.process_time() - begun
    if by_command[0] or by_language[0]:
        return by_command, by_language, spent, ""
    return by_command, by_language, spent, _difference(by_command[3]["out.coll"], files, language)


def _difference(text: str, files: dict[str, str], language: str) -> str:
    """Return how the written file and the language's own import differ; empty if they do not."""
    import os
    import tempfile

    from collc.frontends import coll

    if coll.format_text(text) != text:
        return "the written file is not in canonical form"
    written = coll.load("out.coll", text=text, node_limit=_LIMIT).topologies["network"]
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_text(content, encoding="utf-8", errors="surrogatepass", newline="")
        os.chdir(folder)
        try:
            imported = coll.load("main.coll", text=language, node_limit=_LIMIT).topologies["network"]
        finally:
            os.chdir(before)
    return "" if written == imported else "the written file has another network than `import` of the language"


def _disagreement(by_command: Ran, by_language: Ran) -> str:
    """Return that only one of both accepts the files, if so. The language takes any network for a machine (C0934)."""
    if bool(by_command[0]) == bool(by_language[0]) or "[C0934]" in by_command[2]:
        return ""
    refused = by_language if by_language[0] else by_command
    which = "the language" if by_language[0] else "the command"
    return f"only {which} refuses it: {refused[2].strip().splitlines()[0][:200]}"
