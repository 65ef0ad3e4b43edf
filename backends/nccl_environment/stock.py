"""The variables that make stock NCCL take graph files, tuner tables and topology files, how to see that it did, and how
to undo it.

NCCL reads a wrong path of a tuner table without a message, and a stale graph file fails jobs long after: it also takes
variables from ``/etc/nccl.conf`` and ``~/.nccl.conf``, which outlive the shell that set them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from collc.ir.diagnostic import CollcError, error
from collc.ir.frozen import frozen

from ..markup import root_of
from ..nccl_topo.elements import Element, read_elements, require_limits
from ..nccl_tuner.names import is_left_one_channel, require_row

__all__ = [
    "StockEnvironment", "StockFile", "Variable", "as_object", "as_shell", "kind_of", "stock_environment", "stock_file",
]  # fmt: skip

Kind: TypeAlias = Literal["graph", "topology", "tuner", "ncclx"]

_TITLES: dict[Kind, str] = {
    "graph": "graph file", "topology": "topology file", "tuner": "tuner table", "ncclx": "tuner table of NCCLX",
}  # fmt: skip
_NODE = re.compile(r"(.*\.node)(\d+)(\.xml)", re.DOTALL)
_CONFIGURED = ("/etc/nccl.conf", "~/.nccl.conf")


@frozen
class StockFile:
    """A file for stock NCCL: its path, its kind, the number of its rows (of tables), and what may go wrong with it."""

    path: str
    kind: Kind
    rows: int = 0
    remarks: tuple[str, ...] = ()


@frozen
class Variable:
    """A variable, its value, and why it is set; ``per_node`` ends with a name that differs on every machine."""

    name: str
    value: str
    why: str
    per_node: tuple[str, str] | None = None

    @property
    def shell(self) -> str:
        """The value as a POSIX shell writes it."""
        if self.per_node is None:
            return shlex.quote(self.value)
        return f'{shlex.quote(self.per_node[0])}"$SLURM_NODEID"{self.per_node[1]}'


@frozen
class StockEnvironment:
    """Variables to set, lines to look for (pattern, meaning), commands that undo it, and remarks."""

    variables: tuple[Variable, ...]
    proofs: tuple[tuple[str, str], ...]
    undo: tuple[str, ...]
    remarks: tuple[str, ...]


def kind_of(text: str) -> Kind | None:
    """Return which file of stock NCCL a text is; None if it is none.

    >>> kind_of('<graphs version="1"/>'), kind_of("allreduce,[0,),ring,simple,-1,2,8"), kind_of("<algo/>")
    ('graph', 'ncclx', None)
    """
    root = root_of(text)
    if root in ("graphs", "system"):
        return "graph" if root == "graphs" else "topology"
    rows = _rows(text)
    if rows and not rows[0].startswith("collective") and all(re.match(r"[a-z]+\s*,.*,.*,", row) for row in rows):
        return "ncclx" if re.match(r"[a-z]+\s*,\s*([\[(]|\*)", rows[0]) else "tuner"
    return None


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def stock_file(path: str, text: str) -> StockFile:
    """Return what a file of stock NCCL is; raise C0656 for a text that is none, or that NCCL would misread."""
    kind = kind_of(text)
    if kind is None:
        raise error("C0656", f"`{path}` is no graph file, topology file or tuner table of NCCL")
    if kind in ("tuner", "ncclx"):
        _require_table(path, text, kind)
        return StockFile(path, kind, len(_rows(text)), tuple(_doubts_of_table(path, text, kind)))
    root = _required(path, text)
    if kind == "topology":
        require_limits(root)
        return StockFile(path, kind, 0, tuple(_doubts_of_cpus(path, root)))
    return StockFile(path, kind)


def _require_table(path: str, text: str, kind: Kind) -> None:
    """Raise C0656 for a row that the tuner would take for another."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                require_row(line, "ncclx" if kind == "ncclx" else "example")
            except CollcError as wrong:
                first = wrong.diagnostics[0]
                raise error("C0656", f"`{path}`, line {number}: {first.message}", hint=first.hint) from None


def _doubts_of_table(path: str, text: str, kind: Kind) -> Iterator[str]:
    if kind == "tuner" and any(is_left_one_channel(row) for row in _rows(text)):
        name = os.path.basename(path)
        yield f"{name}: the plugin runs calls of a row with -1 channels on one channel: write 0 instead"


def _required(path: str, text: str) -> Element:
    root = read_elements(text)
    if root is None:
        hint = "NCCL takes no declaration `<?xml ..?>`, no tabs, no single quotes and no text between elements"
        raise error("C0656", f"NCCL would not read `{path}`", hint=hint)
    return root


def _doubts_of_cpus(path: str, root: Element) -> Iterator[str]:
    """Yield a remark for each CPU without an attribute that NCCL needs where it does not detect the CPU."""
    for cpu in root.children:
        needed = ("arch",) if cpu.get("vendor") != "GenuineIntel" else ("arch", "familyid", "modelid")
        missing = [name for name in needed if cpu.get(name) is None]
        if missing:
            what = f"the cpu of NUMA node {cpu.get('numaid')} has no `{missing[0]}`"
            why = "NCCL fails with `Attribute .. of node cpu not found` if it does not detect the CPU"
            yield f"{os.path.basename(path)}: {what}: {why}"


# ---- the environment


def stock_environment(files: Sequence[StockFile], plugin: str | None = None) -> StockEnvironment:
    """Return the environment that makes NCCL take files; ``plugin`` is the tuner library.

    Raises C0657 for several files of one kind, except graph files ``NAME.nodeI.xml``.
    """
    parts = [_PARTS[kind](_one(files, kind), plugin) for kind in _PARTS if any(f.kind == kind for f in files)]
    variables = [variable for part in parts for variable in part.variables]
    logged = [
        Variable("NCCL_DEBUG", "INFO", "logs what was read"),
        Variable("NCCL_DEBUG_SUBSYS", "INIT,ENV,GRAPH,TUNING", "logs little else"),
    ]
    names = " ".join(variable.name for variable in variables)
    found = "|".join(variable.name for variable in variables)
    undo = [f"unset {names} NCCL_DEBUG NCCL_DEBUG_SUBSYS", f"grep -E '^({found})' {' '.join(_CONFIGURED)}"]
    remarks = [
        *(remark for one in files for remark in one.remarks),
        *(remark for part in parts for remark in part.remarks),
        f"NCCL also takes variables from {' and '.join(_CONFIGURED)}: lines found there outlive the shell, remove them",
    ]
    return StockEnvironment(
        (*variables, *logged), tuple(proof for part in parts for proof in part.proofs), tuple(undo), tuple(remarks)
    )


def _one(files: Sequence[StockFile], kind: Kind) -> list[StockFile]:
    """Return the files of a kind; raise C0657 if NCCL cannot take all of them."""
    found = [one for one in files if one.kind == kind]
    per_node = kind == "graph" and all(_NODE.fullmatch(one.path) for one in found)
    stems = {match[1] for one in found if (match := _NODE.fullmatch(one.path))}
    if len(found) > 1 and not (per_node and len(stems) == 1):
        hint = "`nccl-tuner{table=NAME}` writes one table for all collectives" if kind == "tuner" else "choose one"
        raise error("C0657", f"NCCL reads one {_TITLES[kind]}, found {len(found)}", hint=hint)
    return found


def _path(one: StockFile) -> str:
    return os.path.abspath(one.path)


def _graph(files: Sequence[StockFile], plugin: str | None) -> StockEnvironment:
    first = _path(files[0])
    named, why = _NODE.fullmatch(first), "the rings and chains of a machine"
    if len(files) > 1 and named is not None:
        why = f"one of {len(files)} files, by the number of the machine, 0 to {len(files) - 1}"
        variable = Variable("NCCL_GRAPH_FILE", f"{named[1]}$SLURM_NODEID{named[3]}", why, (named[1], named[3]))
    else:
        variable = Variable("NCCL_GRAPH_FILE", first, why)
    shown = variable.value.replace("$SLURM_NODEID", "0")
    return StockEnvironment(
        (variable,),
        (
            (f"NCCL_GRAPH_FILE set by environment to {shown}", "the variable reached the rank"),
            ("channels loaded from XML graph", "`Search 0 : N` are rings, `Search 1 : N` chains; 0: not taken"),
        ),
        (),
        (
            "a graph file is for all GPUs of its machine: a job on fewer GPUs fails with `Dev not found`",
            "NCCL_GRAPH_DUMP_FILE=graph.xml writes the graph that NCCL uses: compare it",
        ),
    )


def _topology(files: Sequence[StockFile], plugin: str | None) -> StockEnvironment:
    path = _path(files[0])
    return StockEnvironment(
        (Variable("NCCL_TOPO_FILE", path, "the CPUs and PCIe switches of a machine"),),
        (
            (f"NCCL_TOPO_FILE set by environment to {path}", "the variable reached the rank"),
            ("=== System : maxBw", "the tree follows: every GPU and NIC stands under its PCIe switch"),
        ),
        (),
        ("NCCL_TOPO_DUMP_FILE=system.xml writes the topology that NCCL uses: compare it",),
    )


def _tuner(files: Sequence[StockFile], plugin: str | None) -> StockEnvironment:
    path, rows = _path(files[0]), files[0].rows
    library = plugin or "libnccl-tuner-example.so"
    return StockEnvironment(
        (
            Variable("NCCL_TUNER_PLUGIN", library, "the plugin that reads the table, `make -C plugins/tuner/example`"),
            Variable("NCCL_TUNER_CONFIG_FILE", path, "the table; without the file NCCL chooses, on one channel"),
        ),
        (
            ("TUNER/Plugin: Using Example (v", "NCCL loaded the plugin"),
            (f"Loaded {rows} tuning configurations from {path}", "all rows were read"),
            ("TUNER/ExamplePlugin: Applied config for collType=", "once for each call that a row decided"),
            ("No matching config found", "must not appear: such a call runs on one channel"),
        ),
        (),
        ("the plugin is a library of NCCL's sources: put its folder into LD_LIBRARY_PATH, or name its path",),
    )


def _ncclx(files: Sequence[StockFile], plugin: str | None) -> StockEnvironment:
    path, rows = _path(files[0]), files[0].rows
    return StockEnvironment(
        (Variable("NCCLX_TUNER_CONFIG_FILE", path, "the table; the tuner is built into NCCLX"),),
        (
            (f"NCCLX TUNER: loaded {rows} tuning rule(s) from '{path}'", "all rows were read"),
            ("NCCLX TUNER: matched rule for collType=", "once for each call that a row decided"),
        ),
        (),
        ("NCCL_TUNER_PLUGIN has no effect beside it",),
    )


_PARTS: dict[Kind, Callable[[Sequence[StockFile], str | None], StockEnvironment]] = {
    "graph": _graph, "topology": _topology, "tuner": _tuner, "ncclx": _ncclx,
}  # fmt: skip


# ---- as text


def as_shell(found: StockEnvironment) -> str:
    """Return assignments for any POSIX shell, with the lines to look for, and how to undo it, as comments."""
    return "\n".join([*_lines(found), ""])


def _lines(found: StockEnvironment) -> Iterator[str]:
    yield "# stock NCCL: set these for every rank"
    yield from (f"export {one.name}={one.shell}  # {one.why}" for one in found.variables)
    yield "# then look for these lines in the output of every rank:"
    yield from (f"#   {_one_line(pattern)}  ({meaning})" for pattern, meaning in found.proofs)
    yield "# to undo it:"
    yield from (f"#   {command}" for command in found.undo)
    yield "# notes:"
    yield from (f"#   {_one_line(remark)}" for remark in found.remarks)


def _one_line(text: str) -> str:
    """Return a text without characters that could end its comment."""
    return "".join(c if c.isprintable() else "?" for c in text)


def as_object(files: Sequence[StockFile], found: StockEnvironment) -> dict[str, object]:
    """Return the JSON object of an environment."""
    return {
        "runtime": "nccl",
        "variables": {one.name: one.value for one in found.variables},
        "look_for": [{"pattern": pattern, "meaning": meaning} for pattern, meaning in found.proofs],
        "undo": list(found.undo),
        "files": [{"path": _path(one), "kind": one.kind} for one in files],
        "remarks": list(found.remarks),
    }
