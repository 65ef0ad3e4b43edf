"""The functions of the API that return topologies: of an expression, a graph, or files of machines and fabrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.topology import Topology

from .compiling import LOG, Path, shielded
from .tools.importing import ImportedNetwork, import_texts

if TYPE_CHECKING:
    import networkx

__all__ = ["import_topology", "topology", "topology_from_networkx"]


def topology(expression: str) -> Topology:
    """Return the topology of an expression of the language.

    >>> topology("torus(3, 3, 2)").num_ranks
    18
    """
    from collc.frontends import coll

    return shielded("topology", lambda: coll.topology(expression))


def topology_from_networkx(graph: networkx.Graph, name: str | None = None) -> Topology:
    """Return the topology of a networkx graph, directed or not; its ``to_networkx()`` is the inverse.

    See :meth:`collc.ir.topology.Topology.from_networkx` for its attributes. Raises CollcError: C0302 for a
    wrong bandwidth or latency, C0303 for a graph that is no network.

    >>> import networkx
    >>> topology_from_networkx(networkx.petersen_graph(), "petersen").diameter
    2
    """
    return shielded("topology_from_networkx", lambda: Topology.from_networkx(graph, name))


def import_topology(
    paths: Path | Sequence[Path],
    *,
    gpu: str | None = None,
    gpu_link: str | Fraction | float | None = None,
    nic: str | Fraction | float | None = None,
    tiers: Mapping[str, str | Fraction | float] | None = None,
    size: str | int | None = None,
    choose: str | None = None,
    fabric: Path | Sequence[Path] = (),
    hosts: str | Sequence[str] = (),
    nics: str | None = None,
    format: str | None = None,
    name: str | None = None,
    node_limit: int = 20000,
) -> ImportedNetwork:
    """Import the network that files of machines or fabrics describe: ``.topology``, ``.text`` of a `.coll` file.

    The arguments are the options of `collc import`. Bandwidths are texts such as ``"400Gbps"`` or bytes per second,
    ``size`` is a text or bytes. ``nic="none"`` leaves out NICs without a speed. Several ``hosts`` are the lists of
    several machines, in the order of the files. The warnings are in ``.diagnostics`` and go to the log. Raises
    CollcError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "topology.conf")
    ...     size = file.write_text("SwitchName=leaf Nodes=n[1-4]")
    ...     import_topology(file, tiers={"leaf": "400Gbps"}, name="rack").topology
    Topology(rack: 4 ranks, 1 switch, 8 links)
    """
    from .importing import request_of

    def work() -> ImportedNetwork:
        given = request_of(
            paths, gpu, gpu_link, nic, tiers or {}, size, choose, fabric, hosts, nics, format, name, node_limit
        )
        return import_texts(given)

    found = shielded("import_topology", work)
    for warning in found.diagnostics:
        LOG.warning("%s", warning)
    return found
