"""Topology files that are refused: the place of each mistake, all mistakes together, hostile files in time."""

from __future__ import annotations

import time

import pytest
from imported import connected, imported
from mutated import cases, survives
from nccl_files import bus, cpu, element, full, gpu, hints, net, nvlink, pci, ring_box, system

from collc.ir.diagnostic import CollcError, Diagnostic

_SECONDS = 20  # a guard against hanging; all of these take less than one


def refused(text: str) -> list[Diagnostic]:
    start = time.monotonic()
    with pytest.raises(CollcError) as caught:
        imported(text, "nccl-topo")
    assert time.monotonic() - start < _SECONDS
    return list(caught.value.diagnostics)


def pointed(mistake: Diagnostic) -> str:
    """Return the text above the carets of a mistake."""
    span = mistake.span
    assert span is not None and span.line == span.end_line
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


@pytest.mark.parametrize(
    ("old", "new", "code", "caret", "message"),
    [
        ('dev="1"', 'dev="one"', "C0924", '"one"', "found `one`, needed an integer"),
        ('sm="80"', 'sm=""', "C0924", "<gpu", "found `gpu` without `sm`"),
        ('link_width="16"', 'link_width="4294967295"', "C0924", '"4294967295"', "found 4294967295, needed 0 to 255"),
        ('count="12"', 'count="4294967295"', "C0924", '"4294967295"', "found 4294967295, needed 0 to 1000"),
        ('count="12"', 'count="-1"', "C0924", '"-1"', "found -1, needed 0 to 1000"),
        ('count="12" ', "", "C0924", "<nvlink", "found `nvlink` without `count`"),
        ('tclass="0x068000"', "", "C0924", "<nvlink", "found `nvlink` without `tclass`"),
        ('speed="400000"', 'speed="nan"', "C0924", '"nan"', "found `nan`, needed a number"),
        ('speed="400000"', 'speed="1e999999999"', "C0924", '"1e999999999"', "found `1e999999999`, needed a number"),
        ('latency="0.000000"', 'latency="-1"', "C0924", '"-1"', "found a latency out of range, needed microseconds"),
        ('busid="0000:40:00.0" ', "", "C0924", "<pci", "found `pci` without `busid`"),
        ('busid="0000:40:00.0"', 'busid="left"', "C0924", '"left"', "found `left`, needed a bus id such as"),
        ('name="mlx5_2"', 'name="mlx5_0"', "C0930", "<net", "found `mlx5_0:1` twice"),
        ('dev="1"', 'dev="0"', "C0930", "<gpu", "found `gpu0` twice"),
        ('name="mlx5_0"', 'name="a\x7f\u202eb"', "C0931", "<net", "found the name 'a\\u202eb'"),
        ("<nic>", "<nic", "C0927", "<net", "found `<net`, needed an attribute or `>`"),
        ('dev="1"', "dev=1", "C0927", "dev=1", "found `dev=1`, needed an attribute or `>`"),
        ('dev="1"', 'dev="1', "C0927", '80"', 'found `80"`, needed an attribute or `>`'),
        ("</gpu>", "", "C0927", "</pci>", "found `</pci>`, needed `</gpu>`"),
        ("</nic>", "</nic>left", "C0927", "left", "found `left`, needed an element"),
        ("<nic>", "<!-- <nic>", "C0927", "<!--", "found a comment without `-->`"),
        ("<cpu ", "<gpu ", "C0927", "</cpu>", "found `</cpu>`, needed `</gpu>`"),
        ("<system ", "<!DOCTYPE x [<!ENTITY a 'b'>]><system ", "C0927", "<!DOCTYPE", "found `<!DOCTYPE`, needed"),
        ("<system ", "<!ENTITY a 'b'><system ", "C0927", "<!ENTITY", "found `<!ENTITY`, needed elements"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place(old: str, new: str, code: str, caret: str, message: str) -> None:
    text = full(4)
    assert old in text
    first = refused(text.replace(old, new, 1))[0]
    assert first.code == code and first.message.startswith(message), first
    assert pointed(first).startswith(caret)


def test_places_are_those_of_the_pasted_text() -> None:
    text = "".join(f"> \x1b[1m{line}\x1b[0m\n" for line in full(4).replace('dev="1"', 'dev="one"', 1).splitlines())
    [mistake] = refused(text)
    assert pointed(mistake) == '"one"'


def test_places_of_text_that_a_terminal_broke() -> None:
    lines = full(4).replace('dev="1"', 'dev="one"', 1).splitlines()
    broken = "\n".join(line[i : i + 60] for line in lines for i in range(0, len(line), 60))
    assert [pointed(one) for one in refused(broken)] == ['"one"']


def test_places_on_one_long_line() -> None:
    text = full(4).replace("\n", "").replace('dev="3"', 'dev="three"', 1)
    assert [pointed(one) for one in refused(text)] == ['"three"']


def test_all_mistakes_are_reported_together() -> None:
    text = full(4).replace('link_width="16"', 'link_width="-16"').replace('rank="', 'rank="r')
    found = refused(text)
    assert len(found) == 12 and {pointed(one) for one in found} >= {'"-16"', '"r3"'}
    many = system(cpu(*(gpu(n, 16, dev="x") for n in range(100))))
    assert len(refused(many)) == 20


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "C0924", "found no element, needed `<system>`"),
        ("no file\n", "C0924", "found no element, needed `<system>`"),
        ("<graphs version='1'></graphs>", "C0924", "found `<graphs>`, needed `<system>`"),
        ("<system version='1'/>", "C0932", "found 0 CPUs and 0 NICs, needed GPUs"),
        (system(cpu(net(0, 16))), "C0932", "found 1 CPU and 1 NIC, needed GPUs"),
        (full()[:300], "C0927", "found the end of the text"),
        (full()[: full().index("<gpu") + 60], "C0927", "found"),
        ("<system><cpu>", "C0927", "found the end of the text, needed `</cpu>`"),
        ("<system><!-- left", "C0927", "found a comment without `-->`"),
        ("<system><gpu/></system>", "C0924", "found `gpu` in `system`, needed `cpu`"),
        ("<system><cpu><net/></cpu></system>", "C0924", "found `net` in `cpu`, needed `pci` or `nic`"),
        ("</system>", "C0927", "found `</system>`, needed an element"),
        ("<system><", "C0927", "found `<`, needed an element"),
        ("<\u0441ystem/>", "C0927", "found `<`, needed an element"),
    ],
)
def test_texts_that_are_no_topology(text: str, code: str, message: str) -> None:
    first = refused(text)[0]
    assert first.code == code and first.message.startswith(message), first
    assert first.span is not None


def test_text_around_the_elements_is_ignored() -> None:
    network = imported(f"$ cat topo.xml\n{full()}\n$ exit\n<other/>", "nccl-topo")
    assert [one.code for one in network.warnings] == ["C0942"] * 3 + ["C0940"] * 2
    assert network.cables == imported(full()).cables


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (system(*(cpu(gpu(n, 16), numa=n) for n in range(1000))), "C0933"),
        (system(cpu(*(pci(n % 99, gpu(n, 16), gpu(n + 1, 17)) for n in range(0, 16000, 2)))), "C0933"),
        ("<system><cpu>" + '<pci busid="0:1:0.0">' * 100_000, "C0927"),
        ("<system>" + "<cpu/>" * 30_000 + "</system>", "C0933"),
        ("<system>" + "<x/>" * 300_000 + "</system>", "C0933"),
        ('<system a="' + "x" * 1_000_000, "C0927"),
        ("<system " + 'a="1" ' * 100_000 + "/>", "C0932"),
        ("<" * 500_000, "C0927"),
        ("<!--" * 200_000, "C0927"),
        ("&lol;" * 200_000, "C0924"), ("<system>" + "\n" * 1_000_000, "C0933"),
        ("<!--" + "-" * 10_000_000 + "--><system/>", "C0932"),
        (system(cpu(gpu(0, 16), *(element("nic", {}, ['<net name="a"/>\n' * 9_000]) for _ in range(2)))), "C0930"),
    ],
    ids=[
        "links", "devices", "deep", "cpus", "elements", "value", "attributes", "open", "comments", "text", "lines",
        "long", "nets",
    ],
)  # fmt: skip
def test_hostile_texts_are_refused_in_time(text: str, code: str) -> None:
    assert refused(text)[0].code == code


@pytest.mark.slow
def test_chains_of_bridges_and_large_machines_are_read_in_time() -> None:
    start = time.monotonic()
    chain = '<pci busid="0:1:0.0" class="0x060400" link_speed="8 GT/s" link_width="16">' * 900
    text = system(cpu(gpu(0, 1), chain + gpu(1, 2).strip() + "</pci>" * 900))
    assert imported(text).switches == ("cpu0",)
    rows = nvlink("fffffff:ff:ff.0", 18)
    hosts = [
        cpu(*(gpu(n, 16 + n, rows, rank=4 * h + n) for n in range(4)), net(0, 32), host_hash=h) for h in range(500)
    ]
    network = imported(system(*hosts))
    assert len(network.ranks) == 2000 and connected(network.topology("large"))
    assert time.monotonic() - start < _SECONDS


def test_damaged_texts_are_refused_or_read() -> None:
    texts = [
        full(4),
        hints(4),
        ring_box(4),
        system(cpu(gpu(0, 16, nvlink(bus(17), 2, "0x03")), gpu(1, 17), net(0, 20))),
    ]
    accepted = survives(lambda text: imported(text, "nccl-topo").topology("t"), texts, cases(400))
    assert accepted
