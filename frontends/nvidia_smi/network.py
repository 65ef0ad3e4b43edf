"""The network of a machine, from the matrix, the status of the NVLinks, and what the user gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from collc.ir.diagnostic import CollcError, Source, error
from collc.ir.shown import counted, some

from ..importing.figures import Figures, missing
from ..importing.model import Draft, Imported
from ..importing.pasted import Line
from ..importing.squares import squares, table_lines
from .matrix import Matrix, chosen, judged
from .nvlinks import Links, add_nvlinks
from .paths import add_nics, add_paths
from .status import GPU_LINE, LINK_LINE, statuses
from .words import SHAPE, Other, meaning

__all__ = ["network"]

#: lines beside the tables that mean nothing more: legends, commands, prompts, the status of the NVLinks
_KNOWN = re.compile(
    r"[^\w]*(?:(?:NIC[\s|]+)?Legend\b.*|(?:X|SYS|SOC|NODE|PHB|PXB|PIX|PSB|NV#|OK|CNS|GNS|TNS|NS|DR|U)[\s|]*=.*|"
    r"NIC\d+\s*:.*|NVML:.*|.*nvidia-smi.*)?"
)
_ROW = re.compile(r"[^\w]*(GPU\d{1,6})\s+(\S+)(?:\s.*)?")


def network(sources: Sequence[Source], figures: Figures) -> Imported:
    """Return the network that the texts describe; raise CollcError with all mistakes."""
    draft = Draft("nvidia-smi")
    texts = table_lines(sources)
    tables, rest = squares(texts, SHAPE)
    status = statuses(draft, texts)
    found = chosen(draft, tables, figures.choice)
    if not found:
        raise _without_matrix(sources, rest, bool(status))
    matrix = judged(draft, found, rest)
    _ignored(draft, rest)
    for gpu in matrix.gpus:
        draft.rank(matrix.names[gpu], matrix.span(gpu))
    if draft.mistakes:
        return draft.finish()
    links = Links(matrix, status, figures)
    add_nvlinks(draft, links)
    nic = _nic(draft, matrix, figures)
    kept = [*matrix.gpus, *(matrix.nics if nic else ())]
    inside = set(kept)
    for device in kept[len(matrix.gpus) :]:
        draft.switch(matrix.names[device], matrix.span(device))
    if any(i in inside and j in inside for i, j in matrix.levels):
        add_paths(draft, matrix, kept, links.model)
    if nic:
        add_nics(draft, matrix, nic)
    figures.require_within(len(draft.ranks) + len(draft.switches), 2 * len(draft.cables), matrix.span(0))
    return draft.finish()


def _nic(draft: Draft, matrix: Matrix, figures: Figures) -> Fraction:
    """Return the bandwidth of a NIC; 0 if there is none, or if the user leaves them out."""
    if not matrix.nics:
        return Fraction(0)
    names = some([matrix.names[nic] for nic in matrix.nics])
    if figures.nic == 0:
        draft.note(f"left out the NICs {names}")
    if figures.nic is not None:
        return figures.nic
    message = f"found {counted(len(matrix.nics), 'NIC')}, {names}: the file has no speed of the NICs"
    option = "--nic 400Gbps` or `--nic none"
    draft.take(missing(message, option, "nic: 400 Gbps", matrix.span(matrix.nics[0])))
    return Fraction(0)


def _without_matrix(sources: Sequence[Source], rest: Iterable[Line], has_status: bool) -> CollcError:
    """Return the error for a text without a matrix: the status alone, rows without their header, or anything else."""
    for line in rest:
        row = _ROW.fullmatch(line.text)
        if row and isinstance(meaning(row[2]), int | Other):
            message = f"found the row of {row[1]}, needed the header of the matrix before it"
            return error("C0924", message, span=line.part(row, 1).span, hint="copy the matrix from its first line")
    if has_status:
        message = f"found the NVLinks of each GPU in `{sources[0].path}`, but not which GPUs they link"
        return error("C0960", message, hint="give the output of `nvidia-smi topo -m` too, in the file before it")
    message = f"found no matrix of `nvidia-smi topo -m` in `{sources[0].path}`"
    return error("C0924", message, hint="is the text cut off?")


def _ignored(draft: Draft, rest: Iterable[Line]) -> None:
    """Warn of lines that no rule explains."""
    unknown = [
        line for line in rest
        if not (_KNOWN.fullmatch(line.text) or GPU_LINE.fullmatch(line.text) or LINK_LINE.fullmatch(line.text))
    ]  # fmt: skip
    if unknown:
        message = f"ignored {counted(len(unknown), 'line')} beside the matrix"
        draft.warn("C0942", message, unknown[0].span())
