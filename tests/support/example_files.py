"""The files that commands of ``--help`` and of pages name: small networks, measured times, what machines print."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from commands import Ran
from infiniband import Fabric
from nccl_files import full
from nccl_logs import nccl_log
from places import EXAMPLES
from smi_texts import hgx, matrix

__all__ = ["SUMS", "write_files"]

SUMS = "topology box = complete(4);\ncollective sums = allreduce on box;\nschedule sums using bfb;\n"
_TIMES = "name,bytes,seconds,steps,load\n" + "".join(
    f"ring,{size},{4e-5 + 1.5 * size / 1e9},4,1.5\n" for size in (1024, 65536, 1 << 20, 1 << 24)
)


def _fabric() -> str:
    """Return what ibnetdiscover prints of the hosts n1 and n2 with two adapters each."""
    found = Fabric()
    leaf = found.node("S", "MF0;leaf:MQM9700/U1")
    for port in range(4):
        found.cable(found.node("H", f"n{1 + port // 2} mlx5_{port % 2}"), 1, leaf, 1 + port, "4xNDR")
    return found.text()


def write_files(collc: Callable[..., Ran]) -> None:
    """Write the files into the working folder, with the command where collc makes them."""
    shutil.copy(EXAMPLES / "torus_3x3x2_allreduce.coll", "pod.coll")
    Path("sums.coll").write_text(SUMS)
    Path("site").mkdir()
    Path("site/box.coll").write_text(SUMS)
    Path("times.csv").write_text(_TIMES)
    Path("node.xml").write_text(full(2))
    Path("topo.txt").write_text(matrix(hgx(2, 18, 2)))
    Path("fabric.txt").write_text(_fabric())
    assert collc("sums.coll", "-t", "msccl-xml{runtime=rccl}", "-o", "ring.xml") == Ran(0, "", "")
    assert collc("sums.coll", "-t", "msccl-xml{runtime=rccl}", "-o", "rccl/") == Ran(0, "", "")
    for name, overhead in (("Ring", 40), ("Tree", 9)):
        log = nccl_log(lambda size, overhead=overhead: overhead + size / 5000, (1024, 1 << 20, 1 << 26), algorithm=name)
        Path(f"{name.lower()}.log").write_text(log)
    Path("table.csv").write_text("allreduce,0,18446744073709551615,ring,simple,0,2,16\n")
