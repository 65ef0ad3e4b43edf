"""What a ``.coll`` text takes from outside: parameters, included files, bytes that may not be text."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from collc.frontends import coll
from collc.ir.diagnostic import CollcError, Span
from collc.ir.spec import Spec


def load(text: str, **more: object) -> Spec:
    return coll.load("<test>", text=text, **more)  # type: ignore[arg-type]


def codes(text: str, **more: object) -> list[str]:
    with pytest.raises(CollcError) as caught:
        load(text, **more)
    return [d.code for d in caught.value.diagnostics]


# ---- parameters

BOXES = "param n = 2; topology a { param boxes = n; rank g[boxes]; } topology b { param boxes = 3; rank g[boxes, n]; }"


@pytest.mark.parametrize(
    ("params", "sizes"),
    [
        ({}, [2, 6]), ({"n": "5"}, [5, 15]), ({"boxes": "7"}, [7, 14]), ({"b.boxes": "7"}, [2, 14]),
        ({"boxes": 4, "a.boxes": 1}, [1, 8]), ({"n": "2 * 2", "boxes": "n + 1"}, [5, 20]), ({"n": 2.0}, [2, 6]),
    ],
)  # fmt: skip
def test_parameters_are_set_from_outside(params: dict[str, object], sizes: list[int]) -> None:
    assert [t.num_ranks for t in load(BOXES, params=params).topologies.values()] == sizes


def test_parameters_that_do_not_exist_are_named_with_their_neighbours() -> None:
    with pytest.raises(CollcError) as caught:
        load(BOXES, params={"box": "1", "a.n": "2", "m": "3+"})
    found = [(d.code, d.message, d.hint) for d in caught.value.diagnostics]
    assert ("C0126", "no parameter `box` to set", "did you mean `boxes`?") in found
    assert sum(code == "C0126" for code, _, _ in found) == 3 and "C0101" in [code for code, _, _ in found]
    assert codes("let n = 2;", params={"n": "3"}) == ["C0126"]


def test_values_from_outside_may_not_be_anything() -> None:
    for value in ("", "3; topology x = torus(3)", "torus(", "3 with { latency: 1 us }", "x" * 40, "\0", "zz"):
        assert codes("param n = 2; topology t = torus(n);", params={"n": value})


# ---- includes


def write(folder: Path, **files: str) -> str:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.coll"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder / "main.coll")


def test_includes_are_relative_to_the_including_file_and_read_once(tmp_path: Path) -> None:
    main = write(
        tmp_path, main='include "sub/a.coll"; include "site.coll"; include "./site.coll"; topology t = torus(n, m);',
        sub__a='include "../site.coll"; param m = n + 1;', site="param n = 3;",
    )  # fmt: skip
    spec = coll.load(main, params={"n": "4"})
    assert spec.topologies["t"].num_ranks == 20
    assert spec.files == tuple(os.path.join(tmp_path, name) for name in ("main.coll", "sub/a.coll", "sub/../site.coll"))


def test_included_files_are_found_in_the_include_path(tmp_path: Path) -> None:
    main = write(
        tmp_path, main='include "x.coll"; topology t = torus(n);', one__y="", two__x="param n = 5;", three__x=""
    )
    path = [str(tmp_path / name) for name in ("one", "two", "three")]
    assert coll.load(main, include_path=path).topologies["t"].num_ranks == 5
    with pytest.raises(CollcError, match="no such file"):
        coll.load(main)


def test_mistakes_of_included_files_are_reported_with_the_others_in_order(tmp_path: Path) -> None:
    main = write(tmp_path, main='let a = x; include "b.coll"; let c = ;', b="let b = y; let = 3;")
    with pytest.raises(CollcError) as caught:
        coll.load(main)
    assert [(os.path.basename(d.span.source.path), d.code) for d in caught.value.diagnostics if d.span] == [
        ("main.coll", "C0120"), ("main.coll", "C0101"), ("b.coll", "C0120"), ("b.coll", "C0111"),
    ]  # fmt: skip


def test_includes_in_a_circle_and_too_deep_are_refused(tmp_path: Path) -> None:
    main = write(tmp_path, main='include "b.coll";', b='include "main.coll";')
    with pytest.raises(CollcError, match="C0153"):
        coll.load(main)
    deep = write(
        tmp_path, main='include "f0.coll";', **{f"f{i}": f'include "f{i + 1}.coll";' for i in range(60)}, f60=""
    )
    with pytest.raises(CollcError, match="inside each other"):
        coll.load(deep)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_regular_files_are_included(tmp_path: Path) -> None:
    """A pipe would wait for ever, a device might never end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "/dev/zero", "nowhere", "a\x00b"):
        assert codes(f'include "{tmp_path / name}";')[0] in ("C0150", "C0117"), name


def test_nothing_but_included_and_imported_files_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a string in an option, nor the file of an import whose format does not exist."""
    secret = tmp_path / "secret"
    secret.write_text("param n = 3;")
    opened: list[str] = []
    monkeypatch.setattr("builtins.open", lambda path, *rest: opened.append(str(path)) or io.BytesIO(b""))
    text = f'topology t = import "{secret}" as none; collective c = allreduce on torus(3);'
    codes(f'{text} emit c as mpi-c {{ prefix: "{secret}" }}; topology u {{ rank "{secret}"; }}')
    assert opened == []
    load(f'include "{secret}";')
    assert opened == [str(secret)]


# ---- files


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    cases = {
        "C0117": b"param n = \x00;", "C0118": b"param n = 3; # gr\xf6sse", "C0119": b"#" * (10 * 2**20 + 1),
    }  # fmt: skip
    for code, data in cases.items():
        (tmp_path / "x.coll").write_bytes(data)
        with pytest.raises(CollcError) as caught:
            coll.load(str(tmp_path / "x.coll"))
        assert [d.code for d in caught.value.diagnostics] == [code]
    (place,) = [d.span for d in caught.value.diagnostics]
    assert place is None
    for name in ("", "nowhere"):
        with pytest.raises(CollcError, match="C0150"):
            coll.load(str(tmp_path / name))


def test_places_in_files_with_other_encodings_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "x.coll").write_bytes(b"# one\n\tparam n = \xff;")
    with pytest.raises(CollcError) as caught:
        coll.load(str(tmp_path / "x.coll"))
    span = caught.value.diagnostics[0].span
    assert isinstance(span, Span) and (span.line, span.column) == (2, 12)
