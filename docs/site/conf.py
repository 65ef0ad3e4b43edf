"""How Sphinx makes the site of all pages: ``sphinx-build -W --keep-going -c docs/site . build/site``.

The source is the whole repository, so the links between pages are those that a reader of the repository follows. The
pages have no directives: the navigation is here, and ``tests/whole/test_site.py`` holds that it has every page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any  # Any: the application of Sphinx, which tests of the navigation do not load

ROOT = Path(__file__).resolve().parents[2]

#: the page that everything hangs on: it lists all pages by task
HOME = "docs/index"

#: part of the site -> its pages without `.md`; a folder stands for all of its pages
NAVIGATION: Mapping[str, Sequence[str]] = {
    "Tutorials": ("README", "docs/tutorials/"),
    "How-to": (
        "docs/importing", "docs/mpi", "docs/msccl", "docs/msccl-safety", "docs/mscclpp", "docs/nccl", "docs/oneccl",
        "docs/running", "docs/launch", "docs/torch", "docs/report", "docs/pictures", "docs/simulator", "docs/finder",
        "docs/sweep", "docs/train",
        "docs/faults", "docs/testbed", "benchmarks/testbed/README", "docs/time", "docs/outputs", "docs/editors",
        "docs/how-to/", "examples/plugin/README", "CONTRIBUTING",
    ),
    "Reference": ("docs/language", "docs/reference", "docs/reference/", "docs/records", "docs/api", "docs/glossary"),
    "Explanation": (
        "docs/architecture", "docs/design-decisions", "docs/cost", "docs/baselines", "docs/explanation/",
    ),
    "Papers": ("docs/papers/",),
}  # fmt: skip

#: what the navigation calls a page, if not by its heading
TITLES: Mapping[str, str] = {"README": "Start here", "CONTRIBUTING": "Change collc"}


def navigation() -> dict[str, list[str]]:
    """Return the pages of each part that has some; those of a folder in the order in which the home page lists them."""
    listed = _listed()
    return {part: pages for part, names in NAVIGATION.items() if (pages := list(_pages(names, listed)))}


def _pages(names: Sequence[str], listed: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name.endswith("/"):
            found = [_name(path) for path in (ROOT / name).rglob("*.md")]
            yield from sorted(found, key=lambda page: (listed.index(page) if page in listed else len(listed), page))
        else:
            yield name


def _listed() -> list[str]:
    """Return the pages that the home page links to."""
    home = ROOT / f"{HOME}.md"
    links = re.findall(r"\]\(([^)#\s]+\.md)", home.read_text("utf-8"))
    return [_name((home.parent / link).resolve()) for link in links]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def _with_navigation(app: Any, docname: str, source: list[str]) -> None:  # Any: see above
    """Append the tables of contents, which only the sidebar shows, to the home page."""
    if docname == HOME:
        for part, pages in navigation().items():
            listed = "\n".join(f"{TITLES[page]} </{page}>" if page in TITLES else f"/{page}" for page in pages)
            source[0] += f"\n```{{toctree}}\n:caption: {part}\n:hidden:\n\n{listed}\n```\n"


def setup(app: Any) -> Mapping[str, bool]:  # Any: see above
    app.connect("source-read", _with_navigation)
    # another navigation makes Sphinx read the pages again
    app.add_config_value("navigation_tables", repr((navigation(), TITLES)), "env", (str,))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---- what Sphinx reads

project = "collc"
html_title = "collc"
extensions = ["myst_parser"]
root_doc = HOME
include_patterns = [f"{page}.md" for page in (HOME, *(page for pages in navigation().values() for page in pages))]
exclude_patterns = [".*", "build", "tests"]

# anchors of headings, as code forges make them
myst_heading_anchors = 6
# options in prose keep their two hyphens, and what is quoted keeps its marks
smartquotes = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
# the site's address without a page leads to the home page
html_additional_pages = {"index": "start.html"}
html_copy_source = False
html_show_copyright = False
# a summary would be fetched from the page, which browsers forbid for files
html_show_search_summary = False
html_theme_options = {"top_of_page_buttons": []}
