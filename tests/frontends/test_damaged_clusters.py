"""Damaged texts with names of nodes, imports and clusters: only mistakes come out, and every result is a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutated import cases, survives
from places import CASES
from toy_import import toys

from collc.frontends.coll import format_text, load
from collc.ir.validate import structure

NAMES = ("errors/cluster_hosts", "errors/cluster_nics", "errors/node_names_that_are_wrong", "warnings/cluster",
         "format/names_and_clusters")  # fmt: skip
TOY = "toy\nrank a-1\nrank b 2\nrank c\nswitch fabric\nlink a-1 c 5\nlink c fabric\nguess x=1\n"
USES = """import "node.toy" as m with { nic: 400 Gbps, gpu: h100, tier-leaf: 1 GB/s, latency: 1 us };
topology f { rank "h-1", "h-2"; switch s; link "h-1" <-> s : 1 GB/s; link "h-2" <-> s : 1 GB/s; }
cluster p = m on f { hosts: "h-[1-2]", nic: c* };
collective g = broadcast on without(p, {"h-1/a-1" -> "h-1/c"}) { root: "h-2/c" };
schedule g using steps { at 0: send shard 0 from "h-2/c" to "h-1/c"; }
"""


def test_damaged_files_give_mistakes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node.toy").write_text(TOY.replace("rank b 2\n", ""))
    texts = [(CASES / f"{name}.coll").read_text() for name in NAMES]

    def run(text: str) -> None:
        for net in load("t.coll", text=text, node_limit=2000).topologies.values():
            assert structure(net) == [] and len(set(net.names)) == net.num_nodes
        assert format_text(format_text(text)) == format_text(text)

    with toys():
        assert survives(run, [*texts, USES, USES, USES], cases(150), seed=5) > 2


def test_damaged_imported_files_give_mistakes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> None:
        (tmp_path / "node.toy").write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        load("t.coll", text=USES, node_limit=2000)

    with toys():
        survives(run, [TOY.replace("rank b 2\n", "")], cases(150), seed=6)
