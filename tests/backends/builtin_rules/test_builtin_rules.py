"""Rules of Open MPI and variables of UCC: readers that refuse what the libraries refuse, and faults that are found."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran
from places import the
from used_algorithms import build_observer

from collc.backends.builtin_rules import read_rules, read_tune, rules_text, tune_text
from collc.backends.builtin_rules.check import wrong_rules, wrong_tune
from collc.backends.mpi_c.toolchain import Mpi, compile_c
from collc.ir.collective import Collective
from collc.ir.tuning import LARGEST, TunedRange, Tuning

Collc = Callable[..., Ran]

SUMS = Tuning(
    "sums", Collective("allreduce", 4), 1, (TunedRange(0, 999, "3", ""), TunedRange(1000, LARGEST, "4", "")),
)  # fmt: skip
NAMED = Tuning(
    "sums", Collective("allreduce", 4), 1, (TunedRange(0, 999, "knomial", ""), TunedRange(1000, LARGEST, "ring", "")),
)  # fmt: skip


def test_rules_are_read_back() -> None:
    text = rules_text([("2", SUMS)])
    assert read_rules(text) == {2: {1: [(0, 0)], 4: [(0, 3), (1000, 4)], 5: [(0, 0)]}}
    assert wrong_rules(text, [("2", SUMS)]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("1000 4", "1001 4"), ("0 3 0 0", "0 6 0 0"), ("\n2 # all", "\n7 # all"), ("\n4 # ranks", "\n3 # ranks"),
     ("0 3 0 0", "1 3 0 0"), ("1000 4 0 0\n", ""), ("3 # numbers", "2 #")],
)  # fmt: skip
def test_a_fault_in_rules_is_found(old: str, new: str) -> None:
    text = rules_text([("2", SUMS)])
    assert old in text
    assert wrong_rules(text.replace(old, new), [("2", SUMS)]) is not None


def test_tunes_are_read_back() -> None:
    text = tune_text([("allreduce", False, NAMED)])
    assert text == "allreduce:0-1000:[4-4]:inf:@knomial#allreduce:1000-inf:[4-4]:inf:@ring"
    assert read_tune(text) == {("allreduce", 4): [(0, "knomial"), (1000, "ring")]}
    assert wrong_tune(text, [("allreduce", False, NAMED)]) is None
    blocks = tune_text([("reduce_scatter", True, NAMED)])
    assert "0-250:" in blocks and wrong_tune(blocks, [("reduce_scatter", True, NAMED)]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [("1000-inf", "1001-inf"), ("0-1000", "0-1001"), ("@ring", "@dbt"), ("[4-4]", "[4-5]"), ("[4-4]", "[8-8]"),
     ("-inf", "-99999"), ("#", "##"), ("allreduce", "bcast")],
)  # fmt: skip
def test_a_fault_in_a_tune_is_found(old: str, new: str) -> None:
    text = tune_text([("allreduce", False, NAMED)])
    assert old in text and wrong_tune(text.replace(old, new), [("allreduce", False, NAMED)]) is not None


# ---- from the command line

SPEC = """topology net = torus(4);
collective sums = allreduce on net;
collective parts = allgather on net;
collective swap = alltoall on net;
collective news = broadcast on net { root: 0 };
collective total = reduce on net { root: 0 };
collective all = gather on net { root: 0 };
"""

#: number of Open MPI's function and algorithm -> the function in libmpi that executes it
FUNCTIONS = {
    (0, 2): "allgather_intra_bruck", (0, 3): "allgather_intra_recursivedoubling", (0, 4): "allgather_intra_ring",
    (0, 5): "allgather_intra_neighborexchange", (2, 1): "allreduce_intra_basic_linear",
    (2, 3): "allreduce_intra_recursivedoubling", (2, 4): "allreduce_intra_ring",
    (2, 6): "allreduce_intra_redscat_allgather", (3, 2): "alltoall_intra_pairwise", (3, 3): "alltoall_intra_bruck",
    (7, 1): "bcast_intra_basic_linear", (7, 6): "bcast_intra_binomial", (7, 8): "bcast_intra_scatter_allgather",
    (7, 9): "bcast_intra_scatter_allgather_ring", (11, 1): "reduce_intra_basic_linear",
    (11, 5): "reduce_intra_binomial", (11, 7): "reduce_intra_redscat_gather",
}  # fmt: skip


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("sizes", [(64, 400_000), (4_000, 4_000_000)])
def test_open_mpi_runs_the_chosen_algorithms(
    sizes: tuple[int, int], collc: Collc, openmpi: Mpi, tmp_path: Path
) -> None:
    """Open MPI's own functions are wrapped, and say which of them ran."""
    (tmp_path / "net.coll").write_text(SPEC)
    rules = tmp_path / "rules"
    ran = collc("env", str(tmp_path / "net.coll"), "--library", "openmpi", "--rules", str(rules))
    assert ran.status == 0 and "`all` is left to the library: no algorithm of Open MPI for gather" in ran.out
    compile_c(openmpi, [the("called_sizes.c")], tmp_path / "program")
    observer = build_observer(next(openmpi.folder.parent.glob("lib/libmpi.so.40")), tmp_path)
    script = f"{ran.out}exec {openmpi.mpiexec} -x LD_PRELOAD={observer} --allow-run-as-root --oversubscribe -n 4 "
    for size in sizes:
        done = subprocess.run(
            ["timeout", "60", "sh", "-c", f"{script} {tmp_path}/program {size}"], capture_output=True, text=True,
            env=openmpi.environment(os.environ), check=True,
        )  # fmt: skip
        used = set(re.findall(r"used ompi_coll_base_(\w+)", done.stderr))
        for function, numbers in read_rules(rules.read_text()).items():
            algorithm = [chosen for low, chosen in numbers[4] if low <= size][-1]
            wanted = FUNCTIONS[function, algorithm]
            mine = {one for one in used if one.startswith(wanted.partition("_intra")[0] + "_intra")}
            assert mine - {"bcast_intra_generic", "reduce_intra_generic"} == {wanted}
        assert "rror" not in done.stderr


def test_nccl_gets_its_variables(collc: Collc, tmp_path: Path) -> None:
    spec = tmp_path / "net.coll"
    spec.write_text(
        "topology net = dgx_a100(2);\ncollective sums = allreduce on net { size: 1 GiB };\n"
        "collective parts = allgather on net;\n"
    )
    ran = collc("env", str(spec), "--library", "nccl", "--shell", "json")
    assert ran.status == 0 and '"NCCL_ALGO": "allreduce:' in ran.out and '"NCCL_PROTO": "Simple"' in ran.out
    assert "`parts` is left to the library" in ran.out
    small = collc("env", str(spec), "--library", "nccl", "--collective", "parts")
    assert small.status == 1 and "C0740" in small.err
    spec.write_text("topology net = dgx_a100(4);\ncollective sums = allreduce on net;\n")
    assert "C0742" in collc("env", str(spec), "--library", "nccl").err
    spec.write_text("collective sums = allreduce on torus(4);\n")
    assert "C0771" in collc("env", str(spec), "--library", "nccl").err


def test_ucc_gets_its_variables(collc: Collc, tmp_path: Path) -> None:
    (tmp_path / "net.coll").write_text(SPEC)
    ran = collc("env", str(tmp_path / "net.coll"), "--library", "ucc")
    assert ran.status == 0 and "export UCC_TL_UCP_ALLREDUCE_KN_RADIX=2" in ran.out
    script = f'{ran.out}printf %s "$UCC_TL_UCP_TUNE"'
    value = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=True).stdout
    assert {function for function, _ in read_tune(value)} == {"allreduce", "allgather", "alltoall", "bcast"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["net.coll"], "needs --library"),
        (["net.coll", "--library", "openmpi"], "needs --rules FILE"),
        (["net.coll", "--library", "ucc", "--rules", "r"], "--rules is for openmpi"),
        (["net.coll", "net.coll", "--library", "ucc"], "takes one `.coll` file"),
        (["net.coll", "--library", "ucc", "--runtime", "rccl"], "--runtime is for files of a runtime"),
        (["net.xml", "--library", "ucc"], "--library is for a `.coll` file"),
        (["net.xml", "-D", "n=4"], "-D is for a `.coll` file"),
        (["net.coll", "--library", "ucc", "--collective", "none"], "there is no collective `none`"),
        (["net.coll", "--library", "hcoll"], "hcoll"),
    ],
)
def test_wrong_uses(words: list[str], said: str, collc: Collc) -> None:
    Path("net.coll").write_text(SPEC)
    Path("net.xml").write_text("<algo/>")
    ran = collc("env", *words)
    assert ran.status == 2 and said in ran.err and ran.err.count("error:") == 1 and not Path("r").exists()
