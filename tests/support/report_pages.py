"""Pages of the target ``report``, the accounts that they are written from, and browsers that open them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import collc
from collc.backends.report.reader import sections_of
from collc.backends.report.section import Section
from collc.driver.accounts import account_of
from collc.ir.account import Account

__all__ = ["HOSTILE", "TORUS", "account", "browser", "opened", "page", "section"]

TORUS = """\
# A torus.
topology pod = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };
collective grads = allreduce on pod { size: 64 MiB };
schedule grads using bfb;
emit grads as msccl-xml;
"""

#: texts that would be markup or script if they were not escaped
HOSTILE = (
    "</script><script>document.title='owned'</script>", "<img src=x onerror=alert(1)>", "'&lt;<b>&amp;",
    "]]>--><svg/onload=alert(1)>", "${1}`<!--<script>", "javascript:alert(1)",
)  # fmt: skip


@cache
def account(text: str, collective: str = "") -> Account:
    """Return the account of one collective of a text, by default the first."""
    results = collc.compile_source(text)
    return account_of(results[collective] if collective else next(iter(results)))


@cache
def page(text: str) -> str:
    """Return the page of the first collective of a text."""
    return next(iter(collc.compile_source(text, target="report"))).artifacts[0].text


def section(text: str) -> Section:
    """Return the data of the page of the first collective of a text."""
    return sections_of(page(text))[0]


# ---- browsers


def _executable() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Any]:  # Any: playwright may not be there
    """Yield a headless Chromium; skip the test where there is none, or no playwright to drive it."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    executable = _executable()
    if executable is None:
        pytest.skip("no Chromium on PATH: apt-get install chromium")
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


@contextmanager
def opened(chromium: Any, path: Path, width: int = 1600, scheme: str = "light") -> Iterator[Any]:  # Any: as above
    """Yield a tab with a page, which must log no error and ask for nothing but itself."""
    tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    flaws: list[str] = []
    tab.on("pageerror", lambda error: flaws.append(str(error)))
    tab.on("console", lambda message: flaws.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("request", lambda one: flaws.append(one.url) if one.url != path.as_uri() else None)
    tab.goto(path.as_uri())
    try:
        yield tab
        assert flaws == []
    finally:
        tab.close()
