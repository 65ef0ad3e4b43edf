"""Links that lead out of the documentation: https, well-formed, to known hosts; `benchmarks/links.py` opens them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any  # Any: names of a script

import pytest
from places import ROOT

SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "benchmarks" / "links.py"))
HOSTS, PAPERS = SCRIPT["HOSTS"], SCRIPT["PAPERS"]


def test_every_link_and_every_paper_of_the_pages_is_known() -> None:
    assert list(SCRIPT["found_flaws"](ROOT, False, None)) == []


def test_every_known_host_and_paper_is_used_and_explained() -> None:
    """The code counts too: FAST is named where it is implemented."""
    text = "".join(path.read_text("utf-8") for path in SCRIPT["pages"]())
    assert [number for number in PAPERS if number not in text] == [] and all(PAPERS.values())
    assert [host for host, why in HOSTS.items() if not why or f"https://{host}" not in text] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://github.com/a", "is not https"), ("https://example.org/", "not in HOSTS"),
        ("https://github.com:8080/a", "not in HOSTS"), ("https://me@github.com/a", "not in HOSTS"),
        ("[a](https://github.com/a{b)", "odd characters"), ("https://arxiv.org/abs/2402.1", "no arXiv number"),
        ("arXiv:2413.06787v1", "no arXiv number"), ("(arXiv 2401.00001)", "not in PAPERS"),
    ],
)  # fmt: skip
def test_a_wrong_link_is_found(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "README.md").write_text(f"See {text} or [b](https://github.com/microsoft/taccl).\n")
    (flaw,) = SCRIPT["found_flaws"](tmp_path, False, None)
    assert flaw.startswith("README.md: ") and said in flaw


def test_a_paper_that_a_folder_lacks_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("arXiv 2402.06787, version 1\n")
    assert list(SCRIPT["found_flaws"](tmp_path, False, ["arXiv:2402.06787v1"])) == []
    assert len(list(SCRIPT["found_flaws"](tmp_path, False, ["another"]))) == 1


def test_links_end_before_the_sentence_does() -> None:
    text = "See https://github.com/a/b. Or <https://pygments.org>, xmlns='http://www.w3.org/2000/svg'."
    assert SCRIPT["links"](text) == ["https://github.com/a/b", "https://pygments.org"]
