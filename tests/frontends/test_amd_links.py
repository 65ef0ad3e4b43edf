"""The readers of rocm-smi and amd-smi: text, JSON and CSV of one machine give one network; faults and refusals."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from imported import connected, imported, same_after_writing
from mutated import cases, survives
from smi_texts import MANGLED, Links, amd_csv, amd_json, amd_tables, mesh, rocm_json, rocm_tables

from collc.frontends.importing import read, sniff
from collc.frontends.importing.figures import GPUS, Figures
from collc.frontends.importing.model import Imported
from collc.ir.collective import Collective
from collc.ir.costs.bounds import time_per_byte_bound
from collc.ir.diagnostic import CollcError, Diagnostic, Source

MI300X = Figures(GPUS["mi300x"])

#: links between the eight dies of four MI250: 4 in a package, 1 or 2 between packages
DIES = {
    (0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 2): 1, (0, 6): 2, (1, 3): 1, (1, 5): 1, (2, 4): 2, (3, 7): 1,
    (4, 6): 1, (5, 7): 1,
}  # fmt: skip


def dies(a: int, b: int) -> tuple[str, int, int, str]:
    count = DIES.get((min(a, b), max(a, b)), 0)
    return "XGMI", 15 if count else 30, 1, f"{50000 * bool(count)}-{50000 * count}"


def pcie(a: int, b: int) -> tuple[str, int, int, str]:
    """Return what two GPUs have that are below CPUs, two below each."""
    return ("PCIE", 40, 2, "N/A") if a // 2 == b // 2 else ("PCIE", 72, 3, "N/A")


def changed(links: Links, pair: tuple[int, int], cell: tuple[str, int, int, str], both: bool = True) -> Links:
    return lambda a, b: cell if (a, b) == pair or (both and (b, a) == pair) else links(a, b)


def gigabytes(net: Imported) -> dict[tuple[str, str], Fraction]:
    return {(cable.a, cable.b): cable.bandwidth / 10**9 for cable in net.cables}


def same(a: Imported, b: Imported) -> bool:
    return (a.ranks, a.switches, a.cables) == (b.ranks, b.switches, b.cables)


def faults(net: Imported) -> list[str]:
    return [one.message for one in net.warnings if one.code == "C0941"]


def refusal(text: str, format: str, figures: Figures = MI300X) -> list[Diagnostic]:
    with pytest.raises(CollcError) as failure:
        imported(text, format, figures)
    return list(failure.value.diagnostics)


def bound(net: Imported) -> Fraction:
    topology = net.topology("pod")
    return 1 / time_per_byte_bound(topology, Collective("allgather", topology.num_ranks))[0] / 10**9


WRITERS: dict[str, Callable[[int, Links], str]] = {
    "rocm-smi": rocm_tables,
    "rocm-smi json": rocm_json,
    "amd-smi": amd_tables,
    "amd-smi json": amd_json,
    "amd-smi old json": lambda gpus, links: amd_json(gpus, links, old=True),
    "amd-smi csv": amd_csv,
}


# ---- one network from all forms


@pytest.mark.parametrize("form", WRITERS)
def test_mesh_by_hand(form: str) -> None:
    """Eight MI300X: 64 GB/s for each pair by the datasheet, seven links into each GPU."""
    text = WRITERS[form](8, mesh())
    assert sniff(text) == form.split()[0]
    net = imported(text, None, MI300X)
    assert net.ranks == tuple(f"GPU{i}" for i in range(8)) and not net.switches
    assert gigabytes(net) == {(f"GPU{a}", f"GPU{b}"): 64 for a in range(8) for b in range(a + 1, 8)}
    assert bound(net) == 7 * 64 * Fraction(8, 7)
    assert not net.warnings


@pytest.mark.parametrize("form", ["amd-smi", "amd-smi json", "amd-smi old json", "amd-smi csv"])
def test_bandwidths_of_the_text(form: str) -> None:
    net = imported(WRITERS[form](8, dies), None, Figures())
    expected = {(f"GPU{a}", f"GPU{b}"): 50 * count for (a, b), count in DIES.items()}
    assert gigabytes(net) == expected
    assert not faults(net)


def test_bandwidths_between_dies() -> None:
    text = rocm_tables(8, dies, bandwidths=True)
    net = imported(text, None, Figures())
    assert same(net, imported(amd_tables(8, dies), None, Figures()))
    apart, bandwidths = text.split(" Bandwidth ")[0], " Bandwidth " + text.split(" Bandwidth ")[1]
    sources = [Source("a", apart), Source("b", f"{'=' * 8}{bandwidths}")]
    assert same(net, read(sources, Figures(), "rocm-smi"))
    alone = imported(f"{'=' * 8}{bandwidths}", None, Figures())
    assert gigabytes(alone) == gigabytes(net)


@pytest.mark.parametrize("form", ["rocm-smi", "rocm-smi json"])
def test_weights_tell_direct_links(form: str) -> None:
    """Hops are 1 for every route of xGMI; the weight is 15 for each link on it."""
    net = imported(WRITERS[form](8, dies), None, Figures(GPUS["mi250"]))
    assert gigabytes(net) == {(f"GPU{a}", f"GPU{b}"): 50 for a, b in DIES}
    [warning] = net.warnings
    assert warning.code == "C0940" and "one link for each pair" in warning.message


@pytest.mark.parametrize("form", WRITERS)
def test_pcie_by_hand(form: str) -> None:
    net = imported(WRITERS[form](4, pcie), None, MI300X)
    expected = {(f"GPU{i}", f"cpu{0 if 'json' in form and 'rocm' in form else i // 2}"): 63 for i in range(4)}
    if form != "rocm-smi json":  # its objects of GPUs have a NUMA node, 0 here
        expected["cpu0", "cpu1"] = 16
    assert gigabytes(net) == expected


def test_unknown_links_lead_through_the_host() -> None:
    unknown = changed(mesh("50000-50000"), (0, 1), ("UNKNOWN", 0, 0, "N/A"))
    assert imported(amd_tables(2, unknown), None, MI300X).switches == ("cpu0",)


def test_second_text_beside_json() -> None:
    sources = [Source("a.json", amd_json(2, mesh("50000-50000"))), Source("b.txt", "")]
    with pytest.raises(CollcError, match="needed one"):
        read(sources, Figures(), "amd-smi")


def test_numa_nodes() -> None:
    for text in (rocm_tables(4, pcie, [3, 3, 1, 1]), rocm_json(4, pcie, [3, 3, 1, 1])):
        net = imported(text, None, MI300X)
        assert net.switches == ("cpu3", "cpu1")
        assert [cable.a for cable in net.cables if cable.b == "cpu3"] == ["GPU0", "GPU1"]
    static = "".join(f"GPU: {i}\n    NUMA:\n        NODE: {(3, 3, 1, 1)[i]}\n        AFFINITY: 0\n" for i in range(4))
    assert imported(amd_tables(4, pcie) + static, None, MI300X).switches == ("cpu3", "cpu1")


def test_names_of_the_gpus() -> None:
    expected = imported(rocm_tables(8, mesh()), None, MI300X)
    series = "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM\n"
    graphics = "GPU[0]\t\t: GFX Version: \t\tgfx942\n"
    for text in (rocm_tables(8, mesh()) + series, rocm_tables(8, mesh()) + graphics,
                 rocm_json(8, mesh(), series="AMD Instinct MI300X"),
                 amd_tables(8, mesh()) + "GPU: 0\n    ASIC:\n        MARKET_NAME: AMD Instinct MI300X\n"):  # fmt: skip
        assert same(imported(text, None, Figures()), expected)


def test_addresses_are_in_a_comment() -> None:
    [note] = [one for one in imported(amd_tables(2, mesh("50000-50000")), None).notes if "addresses" in one.text]
    assert note.text == "PCIe addresses: GPU0 0000:05:00.0, GPU1 0000:15:00.0"


@pytest.mark.parametrize("mangled", [name for name in MANGLED if name != "another column"])
@pytest.mark.parametrize("text", [rocm_tables(8, mesh(), [0] * 4 + [1] * 4), amd_tables(8, dies)])
def test_pasting_changes_nothing(text: str, mangled: str) -> None:
    damaged = MANGLED[mangled](text)
    assert sniff(damaged) == sniff(text)
    assert same(imported(damaged, None, MI300X), imported(text, None, MI300X))


@pytest.mark.parametrize("width", range(50, 120, 11))
def test_any_width_of_a_terminal(width: int) -> None:
    text = amd_tables(8, dies)
    assert same(imported(narrowed(text, width), None, MI300X), imported(text, None, MI300X))


@pytest.mark.parametrize("width", range(30, 91, 3))
def test_titles_may_be_broken(width: int) -> None:
    text = rocm_tables(4, mesh(), [0, 0, 1, 1])
    assert same(imported(narrowed(text, width), None, MI300X), imported(text, None, MI300X))


def narrowed(text: str, width: int) -> str:
    """Return a text as a terminal of some columns shows it."""
    return "\n".join(
        line[i : i + width] for line in text.split("\n") for i in range(0, max(len(line), 1), width)
    )  # fmt: skip


def test_bandwidths_of_zero_count_as_none() -> None:
    net = imported(amd_tables(8, mesh("0-0")), None, Figures(GPUS["mi350x"]))
    assert set(gigabytes(net).values()) == {Fraction("76.8")}


# ---- faults


def test_gpu_without_links() -> None:
    def alone(a: int, b: int) -> tuple[str, int, int, str]:
        return ("PCIE", 40, 2, "N/A") if 5 in (a, b) else ("XGMI", 15, 1, "50000-50000")

    net = imported(amd_tables(8, alone), None, MI300X)
    assert faults(net) == ["GPU5 has no xGMI links, its peers have some"]
    assert "cpu0" in net.switches and connected(net.topology("pod"))


def test_pair_without_a_link() -> None:
    net = imported(rocm_tables(8, changed(mesh(), (2, 6), ("PCIE", 40, 2, "N/A")), [0] * 8), None, MI300X)
    assert faults(net) == ["these GPUs have no xGMI link, unlike all others: GPU2 and GPU6"]


def test_directions_that_differ() -> None:
    one_way = changed(mesh("50000-50000"), (1, 2), ("PCIE", 40, 2, "50000-100000"), both=False)
    found = faults(imported(amd_tables(4, one_way), None, MI300X))
    assert found[0] == "GPU1 and GPU2 have PCIE in one direction and XGMI in the other; the network has PCIE"
    assert found[1] == "GPU1 and GPU2 have 100 GB/s and 50 GB/s in their two directions"


def test_no_access() -> None:
    text = amd_tables(2, mesh("50000-50000"))
    lines = text.split("\n")
    lines[2] = lines[2].replace("ENABLED      ENABLED", "ENABLED      DISABLED")
    net = imported("\n".join(lines), None)
    assert faults(net) == ["GPU0 and GPU1 have an xGMI link, but no access to each other"]


# ---- refusals


def test_model_is_asked_for() -> None:
    for form in WRITERS:
        [found] = refusal(WRITERS[form](8, mesh()), form.split()[0], Figures())
        assert found.code == "C0923" and "--gpu" in str(found.hint)


def test_tables_without_links() -> None:
    text = rocm_tables(4, mesh())
    [found] = refusal(text[: text.index("= Link Type")], "rocm-smi")
    assert found.code == "C0962"


@pytest.mark.parametrize(
    ("change", "message", "place"),
    [
        (("XGMI", "XGMJ"), "found `XGMJ`, needed XGMI or PCIE", (18, 21, 25)),
        (("15 ", "1.5"), "found `1.5`, needed a weight", (4, 21, 24)),
        (("XGMI         \nGPU1", "\nGPU1"), "found 3 cells in the row of GPU0, needed 4 cells", (18, 34, 38)),
    ],
)
def test_wrong_cells(change: tuple[str, str], message: str, place: tuple[int, int, int]) -> None:
    text = rocm_tables(4, mesh())
    first = refusal(text.replace(*change, 1), "rocm-smi")[0]
    assert (first.code, first.message) == ("C0924", message)
    assert first.span is not None and (first.span.line, first.span.column, first.span.end_column) == place


def test_wrong_values_in_json() -> None:
    value = json.loads(amd_json(2, mesh()))
    value[1]["links"][0]["link_type"] = "WIFI"
    [found] = refusal(json.dumps(value, indent=1), "amd-smi")
    assert found.message == "found `WIFI`, needed XGMI or PCIE"
    assert found.span is not None and found.span.source.line(found.span.line).strip() == '"link_type": "WIFI",'
    found = refusal(rocm_json(2, mesh()).replace("XGMI", "WIFI"), "rocm-smi")[0]
    assert found.message == "found `WIFI`, needed XGMI or PCIE"
    assert found.span is not None and found.span.column > 1


@pytest.mark.parametrize(
    ("text", "format", "code"),
    [
        ("", "rocm-smi", "C0932"), ("", "amd-smi", "C0932"), ("{}", "rocm-smi", "C0932"), ("[]", "amd-smi", "C0932"),
        ("{", "rocm-smi", "C0928"), ("[1]", "amd-smi", "C0924"), ('[{"gpu": 4294967295}]', "amd-smi", "C0924"),
        ('{"a": [{"gpu": true}]}', "amd-smi", "C0924"), ("gpu,link_type_gpu_0", "amd-smi", "C0932"),
        ("gpu,link_type_gpu_0,link_type_gpu_1\n0,SELF,XGMI\n", "amd-smi", "C0924"), ("[" * 100_000, "amd-smi", "C0928"),
    ],
)  # fmt: skip
def test_texts_without_a_machine(text: str, format: str, code: str) -> None:
    assert refusal(text, format)[0].code == code


def test_too_many_gpus() -> None:
    many = json.dumps([{"gpu": i, "links": []} for i in range(600)])
    assert refusal(many, "amd-smi")[0].code == "C0933"
    system = {f"(Topology) Hops between DRM devices 0 and {i}": "1" for i in range(600)}
    assert refusal(json.dumps({"system": system}), "rocm-smi")[0].code == "C0933"


def test_many_mistakes_take_no_longer() -> None:
    links = [{"gpu": i % 200, "link_type": "WIFI"} for i in range(5000)]
    begin = time.monotonic()
    assert len(refusal(json.dumps([{"gpu": 0, "links": links}]), "amd-smi")) == 20
    assert time.monotonic() - begin < 20


# ---- what comes out


@pytest.mark.parametrize("text", [amd_tables(8, dies), rocm_tables(4, pcie, [0, 0, 1, 1]), rocm_json(8, mesh())])
def test_the_written_file_is_the_same(text: str) -> None:
    assert connected(same_after_writing(imported(text, None, MI300X)))


MUTATED = {
    "rocm-smi": (rocm_tables(4, pcie, [0, 0, 1, 1]), rocm_tables(8, dies, bandwidths=True), rocm_json(4, mesh())),
    "amd-smi": (amd_tables(4, dies), amd_json(3, mesh("50000-50000")), amd_json(3, pcie, old=True), amd_csv(3, pcie)),
}


@pytest.mark.parametrize("format", MUTATED)
def test_mutations(format: str) -> None:
    def run(text: str) -> None:
        imported(text, format, MI300X).topology("pod")

    begin = time.monotonic()
    assert survives(run, MUTATED[format], cases()) > 0
    assert time.monotonic() - begin < 2 * cases()
