"""The verbs beside compile: cost, verify, format, the lists, explain."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COST_KEYS, Ran
from msccl_files import xml as msccl_xml

from collc.cli.verbs import ALIKE, LATER, VERBS
from collc.messages.explain import all_codes
from collc.passes import PASSES, SCHEDULERS

Collc = Callable[..., Ran]


def test_json_of_cost_has_the_keys_tools_read(collc: Collc, ring: str) -> None:
    ran = collc("cost", ring, "--json", "--size", "1MiB,64MiB", "--alpha", "10us", "--bandwidth", "100Gbps")
    found = json.loads(ran.out)
    assert found.keys() >= COST_KEYS
    assert ("3/2", 1.5, "3/2", 4, True, 4) == tuple(
        found[key] for key in ("T_B", "T_B_float", "T_B_bound", "T_L", "bw_optimal", "steps")
    )
    assert [1 << 20, 64 << 20] == [point["size_bytes"] for point in found["points"]]
    seconds = 4 * 10e-6 + 1.5 * (1 << 20) / 12.5e9
    assert abs(found["points"][0]["time_us"] - seconds * 1e6) < 1e-6
    assert abs(found["points"][0]["algbw_GBps"] - (1 << 20) / seconds / 1e9) < 1e-6


def test_cost_takes_sizes_and_links_from_the_file(collc: Collc) -> None:
    Path("a.coll").write_text(
        "topology t = biring(4) with { bandwidth: 50 Gbps, latency: 10 us };\n"
        "collective g = allreduce on t { size: 1 MiB };\n"
    )
    (point,) = json.loads(collc("cost", "a.coll", "--json").out)["points"]
    assert (1 << 20, 4 * 10 + 1.5 * (1 << 20) / 12.5e3) == (point["size_bytes"], pytest.approx(point["time_us"]))


@pytest.mark.parametrize(
    ("expression", "ranks", "diameter"),
    [("torus(3, 3, 2)", 18, 3), ("torus(3, 3, 3, 2)", 54, 4), ("torus(5, 7)", 35, 5), ("hypercube(5)", 32, 5),
     ("circulant(12, {2, 3})", 12, 2), ("hamming(2, 3)", 9, 2), ("complete(7)", 7, 1), ("complete_bipartite(4)", 8, 2)],
)  # fmt: skip
def test_costs_of_the_direct_connect_paper_are_exact(collc: Collc, expression: str, ranks: int, diameter: int) -> None:
    found = json.loads(collc("cost", "-", "--json", stdin=f"collective g = allgather on {expression};").out)
    assert (ranks, f"{ranks - 1}/{ranks}", diameter) == (found["ranks"], found["T_B"], found["T_L"])
    assert found["bw_optimal"] is True


def test_verify_reads_what_compile_writes(collc: Collc, ring: str) -> None:
    for runtime in ("msccl", "executor", "rccl"):
        collc(ring, "-t", f"msccl-xml{{runtime={runtime}}}", "-o", "a.xml")
        ran = collc("verify", "a.xml", "--runtime", runtime, "--json")
        found = json.loads(ran.out)
        assert (0, True, "msccl-xml", "allreduce", 4) == (
            ran.status, found["ok"], found["kind"], found["collective"], found["ranks"],
        )  # fmt: skip
        assert all(set(check) == {"name", "ok", "detail"} and check["ok"] for check in found["checks"])


def test_verify_warns(collc: Collc) -> None:
    """A wait for a step without a flag, which the next one ends."""
    first = ["cpy i0 o0 1", "cpy i1 o1 1 !"]
    text = msccl_xml("allreduce", 3, [[(-1, -1, 0, first), (-1, -1, 0, ["cpy i2 o2 1 <0:0"])]], (3, 3, 0))
    Path("late.xml").write_text(text)
    ran = collc("verify", "late.xml")
    assert ran.status == 0 and "verified" in ran.out and "[C0612]" in ran.err and "warning" in ran.err
    assert "1 with a later step than it names" in ran.out
    ran = collc("verify", "late.xml", "--json")
    found = json.loads(ran.out)
    assert ran.status == 0 and found["ok"] and [w["code"] for w in found["warnings"]] == ["C0612"]
    ran = collc("verify", "late.xml", "-Werror")
    assert ran.status == 1 and "error" in ran.err and "verified" in ran.out


def test_verify_finds_a_planted_mistake(collc: Collc, ring: str) -> None:
    collc(ring, "-t", "msccl-xml", "-o", "a.xml")
    good = Path("a.xml").read_text()
    assert 'srcoff="1"' in good
    Path("a.xml").write_text(good.replace('srcoff="1"', 'srcoff="0"', 1))
    ran = collc("verify", "a.xml")
    assert (1, True) == (ran.status, "WRONG" in ran.out)
    assert collc("verify", "-", stdin=good).status == 0
    assert collc("verify", "a.xml", "-q").status == 1
    assert collc("verify", "-", "-q", stdin=good) == Ran(0, "", "")


def test_format_rewrites_files_in_place(collc: Collc) -> None:
    Path("a.coll").write_text("topology   t=torus( 3,3 );")
    Path("b.coll").write_text("topology t = torus(3, 3);\n")
    Path("b.coll").chmod(0o444)
    ran = collc("format", "--check", "a.coll", "b.coll")
    assert (1, "a.coll: would be formatted\n") == (ran.status, ran.out)
    assert collc("format", "-i", "a.coll", "b.coll") == Ran(0, "", "")
    assert Path("a.coll").read_text() == Path("b.coll").read_text()
    assert collc("format", "-", stdin="param n=1;").out == "param n = 1;\n"
    assert collc("format", "-i", "-").status == collc("format", "-i", "--check", "a.coll").status == 2


def test_formatting_stops_before_it_changes_anything(collc: Collc) -> None:
    Path("a.coll").write_text("topology   t=torus( 3,3 );")
    Path("b.coll").write_text("topology t = torus(3, 3;\n")
    assert collc("format", "-i", "a.coll", "b.coll", "missing.coll").err.count("error:") == 2
    assert "topology   t=torus( 3,3 );" == Path("a.coll").read_text()


@pytest.mark.parametrize("verb", ["targets", "passes", "schedulers", "topologies"])
def test_names_are_listed(collc: Collc, verb: str) -> None:
    listed = json.loads(collc(verb, "--json").out)[verb]
    text = collc(verb).out
    assert all(entry["name"] in text and entry["summary"] in text for entry in listed)
    assert len(listed) > 2


@pytest.mark.parametrize("name", list(PASSES))
def test_every_pass_loads_and_describes_its_options(collc: Collc, name: str) -> None:
    found = json.loads(collc("passes", name, "--json").out)
    assert (name, PASSES[name][2]) == (found["name"], found["summary"])
    assert all(option["help"] for option in found["options"])
    assert collc("passes", name).status == 0


@pytest.mark.parametrize("name", ["msccl-xml", "mpi-c", "ir"])
def test_every_target_describes_its_options(collc: Collc, name: str) -> None:
    assert all(option["help"] for option in json.loads(collc("targets", name, "--json").out)["options"])


def test_one_of_each_list(collc: Collc) -> None:
    assert "torus(" in collc("topologies", "torus").out
    assert all(collc("schedulers", name).status == 0 for name in SCHEDULERS)
    for verb, name, code in (
        ("targets", "mpic", "C0007"), ("passes", "bfs", "C0008"), ("schedulers", "bfs", "C0015"),
        ("topologies", "toruss", "C0001"),
    ):  # fmt: skip
        ran = collc(verb, name)
        assert (2, True) == (ran.status, f"`{name}` [{code}]\n  hint: did you mean" in ran.err)


def test_codes_are_explained(collc: Collc) -> None:
    assert collc("explain", "c0001").out.startswith("C0001: a command line that cannot be understood\n\nAn option")
    assert len(all_codes()) == len(collc("explain").out.splitlines())
    assert "code" in json.loads(collc("explain", "C0001", "--json").out)
    ran = collc("explain", "C9999")
    assert (2, True) == (ran.status, "there is no code `C9999` [C0026]" in ran.err)


# ---- what is said on the way


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["using bfb", "using auto { sizes: 1 KiB..1 MiB }"])
def test_every_remark_is_a_line_of_its_own(collc: Collc, schedule: str) -> None:
    nets = ["torus(3, 3, 2)", "torus(4, 3)"]
    lines = [f"collective c{i} = allreduce on {net};\nschedule c{i} {schedule};\n" for i, net in enumerate(nets)]
    Path("a.coll").write_text("".join(lines))
    ran = collc("a.coll", "-v", "-t", "mpi-c", "-t", "msccl-xml{runtime=rccl}", "-o", "out/", "--json")
    said = [text for one in json.loads(ran.out)["collectives"] for text in one.get("remarks", [])]
    assert len(said) > 2
    assert ran.err.endswith("\n")
    shown = [line for line in ran.err.splitlines() if line.startswith(("collc: c0: ", "collc: c1: "))]
    assert [line.split(": ", 2)[2] for line in shown] == said


@pytest.mark.parametrize("word", ["impotr", "report1", "reprot", "verfy", "tragets", "cots", "comple", "lps", "repor"])
def test_only_verbs_that_there_are_are_suggested(collc: Collc, word: str) -> None:
    ran = collc(word)
    assert (ran.status, f"`{word}` is neither a verb nor a file" in ran.err) == (2, True)
    suggested = re.findall(r"did you mean `(.*)`", ran.err)
    assert set(suggested) <= set(VERBS)


def test_a_verb_that_is_added_is_suggested(collc: Collc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean" not in collc("animtae").err
    monkeypatch.setitem(VERBS, "animate", VERBS["check"])
    assert "did you mean `animate`?" in collc("animtae").err


@pytest.mark.parametrize("word", LATER)
def test_verbs_that_do_not_exist_say_what_to_do_instead(collc: Collc, word: str) -> None:
    """A hint names only verbs that there are."""
    err = collc(word, "x").err
    assert f"this version does not have `collc {word}` [C0022]" in err and f"  hint: {LATER[word]}" in err
    assert set(re.findall(r"`collc ([a-z]+)\b", LATER[word])) <= set(VERBS)


def test_no_verb_of_collc_counts_as_missing(collc: Collc) -> None:
    assert not set(VERBS) & (set(LATER) | set(ALIKE))
    assert "`collc cache` takes info, list, check, times or clear, found `clean`" in collc("cache", "clean").err


@pytest.mark.parametrize("network", ["torus(4, 4)", "pod.coll", "./pod.coll"])
def test_a_network_needs_a_form(collc: Collc, network: str) -> None:
    ran = collc("topologies", network)
    assert ran.status == 2 and f"`{network}` is an expression or a file" in ran.err
    assert f"collc topologies {shlex.quote(network)} --as dot" in ran.err


@pytest.mark.parametrize("word", ALIKE)
def test_verbs_of_other_tools_name_the_verb(collc: Collc, word: str) -> None:
    assert ALIKE[word] in VERBS and f"  hint: `collc {ALIKE[word]}` does that" in collc(word).err
