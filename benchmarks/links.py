"""The external links and arXiv papers of the documentation: are they well-formed and known, and do they answer?

    python benchmarks/links.py                # print every link, and what is wrong with its form
    python benchmarks/links.py --online       # also ask every host for its page; needs the internet
    python benchmarks/links.py --papers DIR   # also look for each arXiv number in the texts (*.txt) of a folder

The exit status is 1 if a link is wrong. Links between pages are tested with the site; these lead out of it.
"""

from __future__ import annotations

import argparse
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

#: host -> why a page links to it
HOSTS = {
    "arxiv.org": "papers that collc implements",
    "download.pytorch.org": "wheels of PyTorch for the CPU",
    "github.com": "source of the runtimes whose files collc reads and writes",
    "pygls.readthedocs.io": "the language server's library",
    "pygments.org": "the library that colors code",
    "ui.perfetto.dev": "the viewer of traces",
}
#: hosts to which the site's builder and its theme link at the end of every page
BUILDERS = frozenset({"www.sphinx-doc.org", "pradyunsg.me"})
#: arXiv number -> what it is
PAPERS = {"2402.06787": "ForestColl", "2505.09764": "FAST, all-to-all between boxes"}
#: names of XML namespaces, which are no links
NAMESPACES = ("http://www.w3.org/", "http://graphml.graphdrawing.org/")

_LINK = re.compile(r"https?://[^\s<>\"'`)\]]+")
_ARXIV = re.compile(r"arXiv(?:[: ]\s*|\.org/abs/)([\d.]*\d(?:v\d+)?)", re.IGNORECASE)
_SECONDS = 20


def pages(root: Path = ROOT) -> list[Path]:
    """Return every page and picture of the documentation."""
    folders = [path for folder in ("docs", "examples", "benchmarks") for path in (root / folder).rglob("*")]
    found = [path for path in [*root.glob("*.md"), *folders] if path.suffix in (".md", ".svg", ".html", ".ipynb")]
    return sorted(path for path in found if path.is_file())


def links(text: str) -> list[str]:
    """Return the external links of a text in order, each once, without the sentence's punctuation."""
    found = (match.rstrip(".,;:") for match in _LINK.findall(text))
    return list(dict.fromkeys(link for link in found if not link.startswith(NAMESPACES)))


def papers(text: str) -> list[str]:
    """Return the numbers that follow the word arXiv in a text."""
    return list(dict.fromkeys(_ARXIV.findall(text)))


def flaw(link: str) -> str:
    """Return what is wrong with a link's form, or an empty text."""
    parts = urlsplit(link)
    if parts.scheme != "https":
        return "is not https"
    if parts.hostname not in {*HOSTS, *BUILDERS} or parts.netloc != parts.hostname:
        return f"leads to `{parts.netloc}`, which is not in HOSTS"
    return "" if re.fullmatch(r"[\w./~%#=&?+-]*", parts.path + parts.query + parts.fragment) else "has odd characters"


def paper_flaw(number: str) -> str:
    """Return what is wrong with an arXiv number, or an empty text."""
    if not re.fullmatch(r"\d\d(0[1-9]|1[0-2])\.\d{4,5}(v\d+)?", number):
        return "is no arXiv number (YYMM.NNNNN)"
    return "" if number.partition("v")[0] in PAPERS else "is not in PAPERS"


def answer(link: str) -> str:
    """Return what is wrong with the answer to a link, or an empty text."""
    request = urllib.request.Request(link, headers={"User-Agent": "collc-links"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as found:
            return "" if found.status == 200 else f"answers {found.status}"
    except OSError as problem:
        return f"does not answer: {problem}"


def found_flaws(root: Path, online: bool, texts: list[str] | None) -> Iterator[str]:
    """Yield a line for every flaw; print every link once."""
    answers = dict[str, str]()
    for page in pages(root):
        name, text = page.relative_to(root), page.read_text("utf-8")
        for link in links(text):
            if wrong := flaw(link):
                yield f"{name}: {link} {wrong}"
            elif link not in answers:
                answers[link] = answer(link) if online else ""
                print(link)
            if answers.get(link):
                yield f"{name}: {link} {answers[link]}"
        for number in papers(text):
            wrong = paper_flaw(number)
            if not wrong and texts is not None and not any(number in one for one in texts):
                wrong = "is in no text of the folder"
            if wrong:
                yield f"{name}: arXiv {number} {wrong}"


def main() -> int:
    """Check all pages; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--online", action="store_true", help="open every link")
    parser.add_argument("--papers", type=Path, help="a folder of papers as texts")
    options = parser.parse_args()
    texts = None if options.papers is None else [path.read_text("utf-8") for path in options.papers.glob("*.txt")]
    wrong = list(found_flaws(ROOT, options.online, texts))
    print("\n".join(wrong) if wrong else "every link is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
