"""`collc env` for stock NCCL, `collc calibrate --nccl-tests`, and `collc topologies --as`, from the command line."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from commands import Ran
from nccl_logs import nccl_log, osu_log
from places import ROOT
from read_networks import read_graphml, read_nodelink

import collc as compiler
from collc.backends.nccl_environment import as_shell, kind_of, stock_environment, stock_file
from collc.frontends import importing
from collc.frontends.coll import topology
from collc.ir.diagnostic import CollcError
from collc.ir.topology import Topology
from collc.tables.listed import NATIVE

Collc = Callable[..., Ran]

TABLE = "# a comment\nallreduce,0,99,tree,simple,0,2,16\nallreduce,100,18446744073709551615,ring,simple,8,2,16\n"
NCCLX = "allreduce,[0,6],tree,simple,-1,2,8\n"
GRAPH = '<graphs version="1">\n  <graph id="0" pattern="4"/>\n</graphs>\n'
SYSTEM = '<system version="1">\n  <cpu numaid="0" arch="arm64"/>\n</system>\n'
SIZES = [2**k for k in range(3, 31, 3)]


def write(**texts: str) -> None:
    for name, text in texts.items():
        Path(name.replace("__", ".")).write_text(text)


def exported(shell: str, **more: str) -> dict[str, str]:
    """Return what a shell has set after the assignments."""
    script = f"eval {shlex.quote(shell)}; env -0"
    given = {**os.environ, **more}
    ran = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, check=True, text=True, env=given)
    return dict(line.split("=", 1) for line in ran.stdout.split("\0") if "=" in line)


# ---- env

SHOWN = """\
# stock NCCL: set these for every rank
export NCCL_GRAPH_FILE={here}/g.node"$SLURM_NODEID".xml  # one of 2 files, by the number of the machine, 0 to 1
export NCCL_TOPO_FILE={here}/vm.xml  # the CPUs and PCIe switches of a machine
export NCCL_TUNER_PLUGIN=libnccl-tuner-example.so  # the plugin that reads the table, `make -C plugins/tuner/example`
export NCCL_TUNER_CONFIG_FILE={here}/t.csv  # the table; without the file NCCL chooses, on one channel
export NCCL_DEBUG=INFO  # logs what was read
export NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING  # logs little else
# then look for these lines in the output of every rank:
#   NCCL_GRAPH_FILE set by environment to {here}/g.node0.xml  (the variable reached the rank)
#   channels loaded from XML graph  (`Search 0 : N` are rings, `Search 1 : N` chains; 0: not taken)
#   NCCL_TOPO_FILE set by environment to {here}/vm.xml  (the variable reached the rank)
#   === System : maxBw  (the tree follows: every GPU and NIC stands under its PCIe switch)
#   TUNER/Plugin: Using Example (v  (NCCL loaded the plugin)
#   Loaded 2 tuning configurations from {here}/t.csv  (all rows were read)
#   TUNER/ExamplePlugin: Applied config for collType=  (once for each call that a row decided)
#   No matching config found  (must not appear: such a call runs on one channel)
# to undo it:
#   unset NCCL_GRAPH_FILE NCCL_TOPO_FILE NCCL_TUNER_PLUGIN NCCL_TUNER_CONFIG_FILE NCCL_DEBUG NCCL_DEBUG_SUBSYS
#   grep -E '^(NCCL_GRAPH_FILE|NCCL_TOPO_FILE|NCCL_TUNER_PLUGIN|NCCL_TUNER_CONFIG_FILE)' /etc/nccl.conf ~/.nccl.conf
# notes:
#   a graph file is for all GPUs of its machine: a job on fewer GPUs fails with `Dev not found`
#   NCCL_GRAPH_DUMP_FILE=graph.xml writes the graph that NCCL uses: compare it
#   NCCL_TOPO_DUMP_FILE=system.xml writes the topology that NCCL uses: compare it
#   the plugin is a library of NCCL's sources: put its folder into LD_LIBRARY_PATH, or name its path
#   NCCL also takes variables from /etc/nccl.conf and ~/.nccl.conf: lines found there outlive the shell, remove them
"""


def test_the_environment_of_all_files(collc: Collc) -> None:
    write(g__node0__xml=GRAPH, g__node1__xml=GRAPH, vm__xml=SYSTEM, t__csv=TABLE)
    ran = collc("env", "g.node0.xml", "g.node1.xml", "t.csv", "vm.xml")
    assert ran == Ran(0, SHOWN.format(here=Path.cwd()), "")
    set_ = exported(ran.out, SLURM_NODEID="1")
    assert set_["NCCL_GRAPH_FILE"] == f"{Path.cwd()}/g.node1.xml"
    assert set_["NCCL_TUNER_CONFIG_FILE"] == f"{Path.cwd()}/t.csv"


def test_what_undoes_it_is_a_command(collc: Collc) -> None:
    write(t__csv=TABLE)
    found = json.loads(collc("env", "t.csv", "--shell", "json", "--plugin", "/opt/my tuner.so").out)
    assert found["variables"]["NCCL_TUNER_PLUGIN"] == "/opt/my tuner.so"
    shell = collc("env", "t.csv", "--plugin", "/opt/my tuner.so").out
    assert exported(shell)["NCCL_TUNER_PLUGIN"] == "/opt/my tuner.so"
    undone = exported(f"{shell}{found['undo'][0]}")
    assert not set(found["variables"]) & set(undone)
    assert (found["runtime"], found["files"]) == ("nccl", [{"path": f"{Path.cwd()}/t.csv", "kind": "tuner"}])


def test_a_table_of_ncclx_has_a_variable_of_its_own(collc: Collc) -> None:
    write(t__csv=NCCLX)
    found = json.loads(collc("env", "t.csv", "--shell", "json").out)
    assert next(iter(found["variables"])) == "NCCLX_TUNER_CONFIG_FILE"
    assert found["look_for"][0]["pattern"] == f"NCCLX TUNER: loaded 1 tuning rule(s) from '{Path.cwd()}/t.csv'"


def test_a_folder_is_read_as_its_files(collc: Collc) -> None:
    Path("out").mkdir()
    Path("out/pod.csv").write_text(TABLE)
    Path("out/notes.txt").write_text("mine")
    assert "NCCL_TUNER_CONFIG_FILE" in collc("env", "out").out


def test_what_compile_writes_is_what_env_takes(collc: Collc) -> None:
    write(a__coll="topology pod = dgx_a100(4);\ncollective grads = allreduce on pod;\n")
    assert collc("a.coll", "-t", "nccl-tuner", "-o", "grads.csv").status == 0
    assert "Loaded 2 tuning configurations" in collc("env", "grads.csv").out
    assert collc("a.coll", "-t", "nccl-tuner{dialect=ncclx}", "-o", "x.csv").status == 0
    assert "NCCLX TUNER: loaded 2 tuning rule(s)" in collc("env", "x.csv").out


@pytest.mark.parametrize(
    ("texts", "words", "why"),
    [
        ({"t__csv": TABLE, "u__csv": TABLE}, ("t.csv", "u.csv"), "C0657"),
        ({"a__xml": GRAPH, "b__xml": GRAPH}, ("a.xml", "b.xml"), "C0657"),
        ({"t__csv": TABLE, "a__xml": "<algo/>"}, ("t.csv", "a.xml"), "C0657"),
        ({"t__csv": TABLE.replace("tree", "trees")}, ("t.csv",), "C0656"),
        ({"a__xml": "<graphs>\t</graphs>"}, ("a.xml",), "C0656"),
        ({"t__csv": TABLE}, ("t.csv", "--runtime", "rccl"), "C0001"),
    ],
)
def test_files_that_nccl_cannot_take_are_refused(
    collc: Collc, texts: dict[str, str], words: tuple[str, ...], why: str
) -> None:
    write(**texts)
    ran = collc("env", *words)
    assert (ran.out, f"[{why}]" in ran.err) == ("", True)


def test_kinds_of_files() -> None:
    assert [kind_of(text) for text in (GRAPH, SYSTEM, TABLE, NCCLX, "a,b\n1,2\n", "", "<algo/>")] == [
        "graph", "topology", "tuner", "ncclx", None, None, None,
    ]  # fmt: skip
    with pytest.raises(CollcError, match="no graph file, topology file or tuner table"):
        stock_file("a", "text")


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (SYSTEM.replace(' arch="arm64"', ""), "the cpu of NUMA node 0 has no `arch`"),
        (SYSTEM.replace('arch="arm64"', 'arch="x86_64" vendor="GenuineIntel"'), "has no `familyid`"),
        (TABLE.replace("8,2,16", "-1,2,16"), "the plugin runs calls of a row with -1 channels on one channel"),
    ],
)
def test_what_may_go_wrong_is_noted(text: str, remark: str) -> None:
    found = stock_environment([stock_file("a", text)])
    assert remark in found.remarks[0]
    assert stock_environment([stock_file("a", SYSTEM)]).remarks[0].startswith("NCCL_TOPO_DUMP_FILE")


def test_names_of_files_end_no_comment() -> None:
    shell = as_shell(stock_environment([stock_file("a\nrm -rf x", SYSTEM)]))
    assert all(line.startswith(("#", "export ", "rm -rf x'")) for line in shell.splitlines())
    assert exported(shell)["NCCL_TOPO_FILE"].endswith("a\nrm -rf x")


# ---- calibrate


def ring(size: int) -> float:
    return 40 + size / 10_000


def tree(size: int) -> float:
    return 9 + size / 5000


def test_logs_become_a_table(collc: Collc) -> None:
    """From the output of nccl-tests to the borders of a tuner table, exactly."""
    write(ring__log=nccl_log(ring, SIZES), tree__log=nccl_log(tree, SIZES, algorithm="Tree", protocol="LL128"))
    ran = collc("calibrate", "--nccl-tests", "ring.log", "tree.log", "-o", "times.csv")
    assert (ran.status, ran.err) == (0, "")
    border = int(ran.out.splitlines()[-1].split()[1])
    rows = list(csv.DictReader(Path("times.csv").read_text().splitlines()))
    assert [*rows[0]] == [column.key for column in NATIVE] and [row["algorithm"] for row in rows] == ["ring", "tree"]
    write(a__coll="topology pod = dgx_a100(2);\ncollective grads = allreduce on pod;\n")
    table = collc("a.coll", "-t", "nccl-tuner{measured=times.csv}", "-o", "-").out.splitlines()
    assert table[-2:] == [
        f"allreduce,0,{border - 1},tree,ll128,0,2,16,-1,-1",
        f"allreduce,{border},18446744073709551615,ring,simple,0,2,16,-1,-1",
    ]
    alpha, beta = (Fraction(rows[0][name]) for name in ("alpha_s", "beta_s_per_byte"))
    assert abs(alpha / Fraction(40, 10**6) - 1) < Fraction(1, 1000) and abs(beta * 10**10 - 1) < Fraction(1, 1000)


def test_times_that_change_change_the_table(collc: Collc) -> None:
    """A cache, and the rule for make, know the file of times."""
    write(a__coll="topology pod = dgx_a100(2);\ncollective grads = allreduce on pod;\n")
    tables = []
    for slower in (1, 2):
        write(r__log=nccl_log(ring, SIZES), t__log=nccl_log(lambda s, by=slower: by * tree(s), SIZES, algorithm="Tree"))
        assert collc("calibrate", "--nccl-tests", "r.log", "t.log", "-o", "times.csv").status == 0
        for _ in range(2):
            words = ("-t", "nccl-tuner{measured=times.csv}", "--cache=cache", "-MD", "-o", "t.csv")
            assert collc("a.coll", *words) == Ran(0, "", "")
            tables.append(Path("t.csv").read_text())
    assert tables[0] == tables[1] != tables[2] == tables[3]
    assert Path("t.d").read_text().split() == ["t.csv:", "\\", "a.coll", "\\", "times.csv"]


def test_results_without_a_schedule_say_so() -> None:
    made = compiler.compile_source("collective c = allreduce on dgx_a100(2);", target="nccl-tuner")["c"]
    assert "for targets without a schedule" in repr(made) and made.program is None
    for use in (lambda: made.cost, made.simulate):
        with pytest.raises(CollcError, match="for targets without a schedule"):
            use()


def test_json_has_lines_and_choices(collc: Collc) -> None:
    write(both__log=nccl_log(ring, SIZES) + nccl_log(tree, SIZES, algorithm="Tree"))
    found = json.loads(collc("calibrate", "--nccl-tests", "both.log", "--json").out)
    assert [one["algorithm"] for one in found["lines"]] == ["ring", "tree"]
    (choice,) = found["choices"]
    assert [one["algorithm"] for one in choice["ranges"]] == ["tree", "ring"]
    assert choice["ranges"][0]["max_bytes"] + 1 == choice["ranges"][1]["min_bytes"]
    assert choice["ranges"][1]["max_bytes"] is None


def test_options_say_what_logs_do_not(collc: Collc) -> None:
    write(a__log=osu_log(ring, SIZES, ranks=None))
    words = ("--ranks", "16", "--nodes", "2", "--algorithm", "ring/ll128=a.log")
    ran = collc("calibrate", *words, "--csv")
    assert (ran.status, ran.err) == (0, "")
    (row,) = csv.DictReader(ran.out.splitlines())
    assert (row["collective"], row["ranks"], row["algorithm"], row["protocol"]) == ("allreduce", "16", "ring", "ll128")


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("--nccl-tests",), 2, "C0001"), (("--algorithm", "ring"), 2, "C0001"), ((), 2, "C0001"),
        (("--algorithm", "rings=a.log"), 2, "C0001"), (("--algorithm", "ring/ll1=a.log"), 2, "C0001"),
        (("--nccl-tests", "a.log", "--collective", "allredce"), 2, "C0001"), (("a.log", "--ranks", "4"), 2, "C0001"),
        (("--nccl-tests", "a.log", "--gamma"), 2, "C0001"), (("--algorithm", "pat=a.log"), 1, "C0774"),
        (("--algorithm", "nvls/ll=a.log"), 1, "C0774"), (("--nccl-tests", "none.log"), 1, "C0002"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(collc: Collc, words: tuple[str, ...], status: int, code: str) -> None:
    write(a__log=nccl_log(ring, SIZES))
    ran = collc("calibrate", *words)
    assert (ran.status, ran.out, f"[{code}]" in ran.err) == (status, "", True)


def test_a_poor_line_is_warned_of(collc: Collc) -> None:
    write(a__log=nccl_log(lambda size: 10 if size < 1 << 20 else 9000, SIZES))
    assert "deviates from its line by" in collc("calibrate", "--nccl-tests", "a.log").err


def test_the_page_shows_what_the_command_prints(collc: Collc) -> None:
    page = (ROOT / "docs" / "nccl.md").read_text()
    ran = collc(str(ROOT / "docs" / "cluster.coll"), "-t", "nccl-tuner", "-o", "-")
    assert ran.status == 0 and f"```text\n{ran.out}```\n" in page


# ---- topologies --as


def test_an_expression_and_a_file_are_networks(collc: Collc) -> None:
    net = "torus(2, 3) with { bandwidth: 25 GB/s, latency: 1 us }"
    assert read_nodelink(collc("topologies", net, "--as", "nodelink").out) == _plain(net)
    write(a__coll="param n = 3;\ntopology pod = torus(2, n) with { bandwidth: 25 GB/s };\n")
    ran = collc("topologies", "a.coll", "--as", "graphml", "-o", "pod.graphml", "-D", "n=4")
    assert ran == Ran(0, "", "") and read_graphml(Path("pod.graphml").read_text()).num_ranks == 8


def _plain(net: str) -> object:
    return type(topology(net)).from_networkx(topology(net).to_networkx())


def test_a_printed_schedule_has_a_network(collc: Collc) -> None:
    write(a__coll="topology pod = torus(3);\ncollective c = allgather on pod;\nschedule c using bfb;\n")
    assert collc("a.coll", "-t", "ir{level=schedule}", "-o", "c.ir").status == 0
    assert read_nodelink(collc("topologies", "c.ir", "--as", "nodelink").out).num_links == 6


def test_a_file_that_is_imported_has_a_network(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reader takes it: here one that returns a ring."""

    class Ring:
        warnings = ()

        def topology(self, name: str) -> Topology:
            return attrs.evolve(topology("biring(3)"), name=name)

    monkeypatch.setattr(importing, "sniff", lambda text: "ring" if text == "a ring" else None)
    monkeypatch.setattr(importing, "read", lambda sources: Ring())
    write(pod_1__txt="a ring")
    ran = collc("topologies", "pod_1.txt", "--as", "dot")
    assert (ran.status, ran.out.splitlines()[0]) == (0, 'digraph "pod_1" {')


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--as", "nodelink"), 2), (("torus(3)", "--as", "gml"), 2), (("torus(3)", "-o", "x"), 2),
        (("torus(3)", "--topology", "x"), 2), (("torus(3)", "--as", "dot", "--json"), 2),
        (("torus(", "--as", "dot"), 1),
        (("torus(3)", "--as", "dot", "--topology", "x"), 2), (("none.coll", "--as", "dot"), 1),
        (("torus(3)", "--as", "dot", "-o", "no/such/x"), 1),
    ],
)  # fmt: skip
def test_wrong_networks_are_refused(collc: Collc, words: tuple[str, ...], status: int) -> None:
    ran = collc("topologies", *words)
    assert (ran.status, ran.out) == (status, "")
