"""The arguments of ``collc.import_topology`` as a request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction

from collc.frontends.importing.coll_text import identifier
from collc.ir.diagnostic import Source, error

from .compiling import Path
from .files.naming import stem_of
from .files.texts import read_text
from .messages import quantities
from .tools.finding import rational, whole
from .tools.importing import Request, figures_of
from .tools.joining import Joining

__all__ = ["request_of"]

Rate = str | Fraction | float


def request_of(
    paths: Path | Sequence[Path], gpu: str | None, gpu_link: Rate | None, nic: Rate | None, tiers: Mapping[str, Rate],
    size: str | int | None, choose: str | None, fabric: Path | Sequence[Path], hosts: str | Sequence[str],
    nics: str | None, format: str | None, name: str | None, node_limit: int,
) -> Request:  # fmt: skip
    """Return what is to be imported; raise CollcError for files that cannot be read and wrong arguments."""
    files, fabrics = _listed(paths), _listed(fabric)
    lists = (hosts,) if isinstance(hosts, str) else tuple(hosts)
    if not files:
        raise error("C0001", "found no files to import, needed at least one", exit_status=2)
    if not fabrics and (lists or nics is not None):
        option = "hosts" if lists else "nics"
        raise error("C0001", f"`{option}` says which machines are on a fabric: give `fabric` too", exit_status=2)
    figures = figures_of(
        gpu, None if gpu_link is None else _rate("gpu_link", gpu_link), _nic(nic),
        {tier: _rate(tier, rate) for tier, rate in tiers.items()}, _size(size), choose, whole("node_limit", node_limit),
    )  # fmt: skip
    return Request(
        tuple(map(_source, files)), identifier(name or ("pod" if fabrics else stem_of(files[0]))), figures, format,
        Joining(tuple(map(_source, fabrics)), lists, nics) if fabrics else None,
    )  # fmt: skip


def _listed(paths: Path | Sequence[Path]) -> list[str]:
    return [os.fspath(paths)] if isinstance(paths, str | os.PathLike) else [os.fspath(path) for path in paths]


def _source(path: str) -> Source:
    return Source(path, read_text(path))


def _rate(name: str, value: Rate) -> Fraction:
    return quantities.bandwidth(value, name) if isinstance(value, str) else rational(name, value, 1)


def _nic(value: Rate | None) -> Fraction | None:
    return None if value is None else Fraction(0) if value == "none" else _rate("nic", value)


def _size(value: str | int | None) -> int | None:
    return None if value is None else quantities.size(value, "size") if isinstance(value, str) else whole("size", value)
