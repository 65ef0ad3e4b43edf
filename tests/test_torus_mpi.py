"""The torus algorithms as files that other programs run: MPI-C under a real MPI, MSCCL-XML read back and executed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from commands import Ran
from mpi_fixtures import Built
from test_torus_algorithms import ALL, root_of
from torus_checks import problem

from collc.backends.mpi_c.toolchain import Mpi
from collc.frontends.coll.families.cayley import torus
from collc.passes.coalesce import Coalesce
from collc.passes.discretize import Discretize
from collc.passes.lower import Lower
from collc.passes.synthesis.torus.bine import Bine
from collc.passes.synthesis.torus.swing import Swing
from collc.passes.threadblocks import BalanceThreadblocks

pytestmark = pytest.mark.xdist_group("mpi")

SHAPES = {4: (2, 2), 6: (2, 3), 7: (7,), 8: (2, 4), 9: (3, 3), 12: (3, 4), 16: (4, 4)}
WRITTEN = (
    "swing { variant: bandwidth }", "swing { variant: latency }", "swing { ports: 1 }", "recursive-doubling",
    "recursive-doubling { mirrored: neg }", "rabenseifner", "rabenseifner { mirrored: reflect }", "bucket", "ring",
    "bine", "bine { order: halving, variant: latency }", "pat { buffer: 2 }", "trivance",
)  # fmt: skip


@pytest.mark.parametrize("ranks", [6, 9])
def test_generated_c_computes_the_collective(ranks: int, mpich: Mpi, tmp_path: Path) -> None:
    """An allreduce of every algorithm, and the rooted ones of those that have them."""
    net, made = torus(*SHAPES[ranks]), []
    pairs = [(a, "allreduce") for a in {type(a): a for a in ALL}.values()]
    pairs += [(Swing(variant="bandwidth"), "allreduce"), (Swing(variant="latency"), "allreduce")]
    pairs += [(Bine(), kind) for kind in ("gather", "scatter", "reduce")] + [(Swing(), "broadcast")]
    for number, (algorithm, kind) in enumerate(pairs):
        schedule = algorithm.run(problem(net, kind, root_of(kind, ranks)))
        program = BalanceThreadblocks().run(Coalesce().run(Lower().run(Discretize().run(schedule))))
        made.append(attrs.evolve(program, name=f"c{number}"))
    rows = Built(mpich, made, tmp_path).run(counts=(1000,), dtypes=("int32",), ops=("sum",)).rows
    assert len({row.name for row in rows}) == len(pairs)
    assert [row.detail for row in rows if not row.correct] == []


@pytest.mark.parametrize("ranks", SHAPES)
def test_files_for_msccl_are_verified(ranks: int, collc: Callable[..., Ran]) -> None:
    sizes = ", ".join(map(str, SHAPES[ranks]))
    lines = [f"topology t = torus({sizes});"]
    for number, scheduler in enumerate(WRITTEN):
        lines += [f"collective c{number} = allreduce on t;", f"schedule c{number} using {scheduler};"]
    Path("a.coll").write_text("\n".join(lines))
    done = collc("compile", "a.coll", "-t", "msccl-xml", "-o", "out/")
    assert done.status == 0, done.err
    files = sorted(Path().rglob("*.xml"))
    assert len(files) == len(WRITTEN)
    for file in files:
        verified = collc("verify", str(file))
        assert verified.status == 0, verified.out + verified.err
