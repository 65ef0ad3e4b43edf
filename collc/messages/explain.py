"""All diagnostic codes of all rooms, with their paragraphs."""

from __future__ import annotations

from importlib import import_module

__all__ = ["ROOMS", "all_codes", "explanation"]

#: The modules whose ``CODES`` together are the codes of the compiler.
ROOMS = (
    "collc.messages.codes",
    "collc.frontends.coll.codes",
    "collc.frontends.importing.codes",
    "collc.ir.codes",
    "collc.passes.codes",
    "collc.backends.msccl_xml.codes",
    "collc.backends.mscclpp_json.codes",
    "collc.backends.mpi_c.codes",
    "collc.backends.oneccl_xml.codes",
    "collc.backends.networks.codes",
    "collc.backends.nccl_topo.codes",
    "collc.backends.nccl_tuner.codes",
    "collc.backends.nccl_graph.codes",
    "collc.backends.svg.codes",
    "collc.backends.chakra.codes",
    "collc.backends.mscclpp_environment.codes",
    "collc.backends.builtin_rules.codes",
    "collc.training.codes",
)


def all_codes() -> dict[str, str]:
    """Return code -> paragraph, in the order of codes. The first line of a paragraph is its title."""
    merged: dict[str, str] = {}
    for room in ROOMS:
        merged.update(import_module(room).CODES)
    return dict(sorted(merged.items()))


def explanation(code: str) -> str | None:
    """Return the paragraph of one code, or None for an unknown code."""
    return all_codes().get(code.upper())
