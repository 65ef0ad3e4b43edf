"""What a launch needs, as text and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from collc.backends.mpi_c.toolchain import Mpi
from collc.files.derived import Origins
from collc.ir.diagnostic import Diagnostic, Excess, Kind, Related, Severity, Source, Span, Subject
from collc.tools.prepared import Launches, Prepared

SPAN = Span(Source("a.coll", "text\n", hidden=True), 1, 2, 1, 3)
WARNING = Diagnostic(
    "C0089", "a message", Severity.WARNING, SPAN, ("a note",), "a hint", Kind.LIMIT, Excess("steps", 3, 2),
    (Related("the first", SPAN),), "size", (Subject.TARGET,),
)  # fmt: skip


@pytest.mark.parametrize(
    "prepared",
    [
        Prepared("torch"),
        Prepared("msccl", (("A", "1"), ("B", "")), details=("x",), outputs=("/a", "/b")),
        Prepared(
            "mpi", (), "/c.so", Mpi(Path("/bin"), "MPICH", "5"), ("s",), ("t",), ((WARNING,), (WARNING,)), ("/c.so",)
        ),
    ],
)  # fmt: skip
def test_texts_are_read_back(prepared: Prepared) -> None:
    assert Prepared.of(prepared.text()) == prepared


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"mpi": null}', '{"mpi": [1]}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Prepared.of(text)


def test_other_classes_are_no_warnings() -> None:
    text = Prepared("torch", warnings=((WARNING,),)).text()
    for wrong in ('[[\\"a\\"]]', '[1]', '3', '[[{\\"is\\":\\"Path\\"}]]'):  # fmt: skip
        begin, _, rest = text.partition('"warnings": "')
        with pytest.raises(ValueError):
            Prepared.of(f'{begin}"warnings": "{wrong}"{rest[rest.index(", " + chr(34) + "outputs") :]}')


def test_a_warning_without_a_text_is_not_kept(tmp_path: Path) -> None:
    class Other(str):
        """A text of a plugin."""

    odd = Diagnostic("C0089", "a", notes=(Other("b"),))
    tmp_path.chmod(0o700)
    assert not Launches(tmp_path).write("0" * 64, Prepared("torch", warnings=((odd,),)), Origins())
    assert Launches(tmp_path).read("0" * 64) is None
