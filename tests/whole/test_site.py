"""The site of all pages: every page is in its navigation, it builds without a warning, and it works in a browser."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # Any: tabs of playwright, which may not be installed

import pytest
from places import ROOT
from report_pages import browser
from sampling import every

CONF: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "site" / "conf.py"))  # Any: a module's names
HOME: str = CONF["HOME"]
PARTS: dict[str, list[str]] = CONF["navigation"]()
PAGES = [HOME, *(page for pages in PARTS.values() for page in pages)]
FOLDERS = ("docs", "examples", "benchmarks")
COMMAND = "-W --keep-going -c docs/site ."


def all_pages(root: Path = ROOT) -> set[str]:
    """Return every page of the repository: those of these folders, and what stands at its top for readers."""
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.md")]
    named = {path.relative_to(root).with_suffix("").as_posix() for path in paths}
    return {*named, "README", "CONTRIBUTING"}


def build(root: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command of CONTRIBUTING.md with another output."""
    pytest.importorskip("sphinx", reason="no Sphinx: pip install 'collc[docs]'")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-q", *options, *shlex.split(COMMAND), str(output)]
    return subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)


# ---- the navigation


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(PAGES) == sorted(all_pages())
    assert len(PAGES) == len(set(PAGES))


def test_a_page_without_a_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs" / "new").mkdir(parents=True)
    (tmp_path / "docs" / "new" / "page.md").write_text("# New\n")
    assert all_pages(tmp_path) - set(PAGES) == {"docs/new/page"}


def test_the_parts_are_those_of_the_kinds_of_documents() -> None:
    assert list(CONF["NAVIGATION"]) == ["Tutorials", "How-to", "Reference", "Explanation", "Papers"]
    folders = {name for names in CONF["NAVIGATION"].values() for name in names if name.endswith("/")}
    assert {"docs/tutorials/", "docs/explanation/", "docs/papers/", "docs/reference/"} <= folders
    assert {"docs/reference/grammar", "docs/reference/commands"} <= set(PARTS["Reference"])


def test_pages_of_a_folder_are_in_the_order_of_the_home_page() -> None:
    listed = CONF["_listed"]()
    for pages in PARTS.values():
        inside = [page for page in pages if page.startswith("docs/reference/")]
        assert inside == sorted(inside, key=listed.index)


def test_pages_have_no_directives() -> None:
    """Code forges and editors would show them as code."""
    for page in all_pages():
        assert re.findall(r"^`{3,}\{.*", (ROOT / f"{page}.md").read_text("utf-8"), re.MULTILINE) == [], page


def test_the_command_is_the_one_of_contributing() -> None:
    assert f".venv/bin/sphinx-build {COMMAND} build/site\n" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_pictures_of_pages_are_small() -> None:
    pictures = [path for end in ("png", "svg") for path in (ROOT / "docs").rglob(f"*.{end}")]
    assert {path.name for path in pictures if path.stat().st_size > 150_000} == set()
    assert {"site-wide.png", "site-narrow.png", "report.png"} <= {path.name for path in pictures}


# ---- the build


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("site")
    built = build(ROOT, output, "-d", str(tmp_path_factory.mktemp("read")))
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return output


def loaded(text: str) -> list[str]:
    """Return what a page loads from elsewhere: scripts, styles, pictures, fonts."""
    found = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"([^\"]*)\"", text)
    found += re.findall(r"url\(['\"]?([^'\")]+)", text) + re.findall(r"@import\s+['\"]([^'\"]+)", text)
    return [one for one in found if re.match(r"(?:[a-z]+:)?//", one)]


@pytest.mark.needs("browser")
def test_every_page_is_built_and_loads_nothing_from_elsewhere(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {f"{page}.html" for page in PAGES} | {"index.html", "search.html"} <= built
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        assert loaded(path.read_text("utf-8")) == [], path


@pytest.mark.needs("browser")
def test_every_page_leads_to_known_hosts_only(site: Path) -> None:
    """The site's builder adds links of its own, if any, below the pages."""
    links = runpy.run_path(str(ROOT / "benchmarks" / "links.py"))
    targets = {
        target
        for path in site.rglob("*.html")
        for target in re.findall(r"<a\b[^>]*?\bhref=\"((?:[a-z]+:)?//[^\"]*)", path.read_text("utf-8"))
    }
    assert len(targets) > 5 and [target for target in targets if links["flaw"](target)] == []


def test_what_comes_from_elsewhere_is_found() -> None:
    text = '<link rel="x" href="https://a/b.css"><a href="https://c">d</a><script async src="//e/f.js"></script>'
    assert loaded(text + "@font-face{src:url(http://g/h.woff)}") == ["https://a/b.css", "//e/f.js", "http://g/h.woff"]


def small_copy(root: Path) -> Path:
    """Write a site with the settings of this one, whose pages are their headings alone; return a page of it."""
    for page in PAGES:
        path = root / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {page}\n")
    shutil.copytree(ROOT / "docs" / "site", root / "docs" / "site")
    return root / "docs" / "time.md"


@pytest.mark.needs("browser")
def test_faults_of_pages_end_the_build(tmp_path: Path) -> None:
    page = small_copy(tmp_path)
    page.write_text(f"{page.read_text()}\n[a](nowhere.md) [b](cost.md#no-such-place) ![c](none.svg)\n")
    built = build(tmp_path, tmp_path / "built", "-b", "dummy")
    assert (built.returncode, built.stderr.count("WARNING")) == (1, 3), built.stderr
    for fault in ("nowhere.md", "no-such-place", "none.svg"):
        assert re.search(rf"docs/time\.md:\d+: WARNING: .*{re.escape(fault)}", built.stderr), fault


# ---- the browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:  # Any: see above
    with browser() as found:
        yield found


def address(site: Path, page: str) -> str:
    return f"{site.as_uri()}/{page}.html"


@contextmanager
def opened(chromium: Any, site: Path, page: str, width: int = 1600, scheme: str = "light") -> Iterator[Any]:
    # Any: see above
    """Yield a tab with a page, which must log no error and ask only for files of the site, as all that it opens."""
    tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    flaws: list[str] = []

    def flaw(text: str) -> None:
        flaws.append(f"{tab.url}: {text}")

    tab.on("pageerror", lambda error: flaw(str(error)))
    tab.on("console", lambda message: flaw(message.text) if message.type in ("error", "warning") else None)
    tab.on("request", lambda one: flaw(one.url) if not one.url.startswith((site.as_uri(), "data:")) else None)
    tab.on("requestfailed", lambda one: flaw(one.url))
    tab.goto(address(site, page))
    try:
        yield tab
        assert flaws == []
    finally:
        tab.close()


SCREENS = [(width, scheme) for width in (800, 1600) for scheme in ("light", "dark")]

#: what of a page is wider than the screen, and pictures that are not there
_FLAWS = """() => {
    const wide = document.documentElement.scrollWidth > window.innerWidth ? ['wider than the screen'] : [];
    const box = document.querySelector('article').getBoundingClientRect();
    const bad = image => !image.naturalWidth || image.getBoundingClientRect().right > box.right + 1;
    return [...wide, ...[...document.querySelectorAll('article img')].filter(bad).map(image => image.src)];
}"""


@pytest.mark.needs("browser")
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_fit_the_screen(chromium: Any, site: Path, width: int, scheme: str) -> None:  # Any: see above
    """Every page on one of the screens; with COLLC_EXHAUSTIVE=1 on all of them."""
    pages = every(len(SCREENS), PAGES, SCREENS.index((width, scheme)))
    with opened(chromium, site, pages[0], width, scheme) as tab:
        for page in pages:
            tab.goto(address(site, page))
            found, paper = tab.evaluate(f"[({_FLAWS})(), getComputedStyle(document.body).backgroundColor]")
            assert found == [], page
            assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark"), page


@pytest.mark.needs("browser")
def test_a_page_that_does_not_fit_is_found(chromium: Any, site: Path) -> None:  # Any: see above
    with opened(chromium, site, HOME, 800) as tab:
        tab.evaluate("document.querySelector('article').insertAdjacentHTML('beforeend', '<pre>' + 'x'.repeat(999))")
        tab.evaluate("document.querySelector('article pre').style.overflow = 'visible'")
        assert tab.evaluate(_FLAWS) == ["wider than the screen"]


@pytest.mark.needs("browser")
def test_the_search_finds_pages_without_a_server(chromium: Any, site: Path) -> None:  # Any: see above
    with opened(chromium, site, HOME) as tab:
        tab.locator("input[name=q]").first.fill("railroad")
        tab.keyboard.press("Enter")
        result = tab.locator("#search-results li a", has_text="Grammar").first
        result.wait_for()
        result.click()
        tab.wait_for_url("**/docs/reference/grammar.html*")
        assert tab.locator("article h1").inner_text().startswith("Grammar")


@pytest.mark.needs("browser")
def test_the_address_of_the_site_leads_to_the_home_page(chromium: Any, site: Path) -> None:  # Any: see above
    with opened(chromium, site, "index") as tab:
        tab.wait_for_url(f"**/{HOME}.html")
        parts = tab.locator(".sidebar-tree .caption-text").all_inner_texts()
        assert [part.lower() for part in parts] == [part.lower() for part in PARTS]


@pytest.mark.needs("browser")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_follow_the_page_and_not_only_the_screen(
    chromium: Any, site: Path, scheme: str, tmp_path: Path
) -> None:  # Any: see above
    """The button of the theme makes the page light or dark; a diagram on it has the same paper."""
    with opened(chromium, site, "docs/reference/grammar", 1600, "dark" if scheme == "light" else "light") as tab:
        picture = tab.locator("article img").first
        before = picture.screenshot()
        button = tab.locator(".theme-toggle-content button")
        for _ in range(3):
            if tab.evaluate("document.body.dataset.theme") == scheme:
                break
            button.click()
        assert tab.evaluate("document.body.dataset.theme") == scheme
        assert picture.screenshot() != before
