"""Reading pictures back: their form, and what they draw against what the schedule says, computed by other means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np

from collc.ir.account import Account
from collc.ir.levels import Scheduled
from collc.ir.schedule import Forest, Schedule
from collc.ir.shown import counted
from collc.ir.symmetric import SymmetricSchedule
from collc.ir.verify import Check

from ..base import Artifact, first_difference
from ..pictures.loads import added_up, forest_of, has_trees
from ..pictures.matrix import LoadMatrix
from ..pictures.networks import LinkLoads, level_of
from ..pictures.svg import NAMESPACE
from .contents import curve_tips

__all__ = ["checks"]

_NAME = f"{{{NAMESPACE}}}"
#: elements that a picture may have: no script, no image, nothing that fetches
_ELEMENTS = frozenset(
    _NAME + tag for tag in ("svg", "title", "desc", "style", "g", "path", "line", "rect", "circle", "text")
)
_LEAST_FONT, _WIDEST = 11.0, 800.0

Element = ElementTree.Element


def checks(account: Account, artifacts: Sequence[Artifact], due: Sequence[Artifact]) -> Iterator[Check]:
    """Yield the checks of the pictures of an account; ``due`` are the files as they should be."""
    names, needed = [one.filename for one in artifacts], [one.filename for one in due]
    yield Check("files", names == needed, f"found {', '.join(names) or 'none'}, needed {', '.join(needed)}")
    if names != needed:
        return
    loads = added_up(account.shown.schedule)
    for found, expected in zip(artifacts, due, strict=True):
        try:
            root = ElementTree.fromstring(found.text)
        except (ElementTree.ParseError, ValueError) as problem:
            yield Check("reading", False, f"{found.filename}: {problem}")
            continue
        yield from _form(found.filename, root)
        name = re.sub(r".*-(trees|load|goodput)\.svg$", r"\1", expected.ending)
        yield from _content(name, root, account, loads)
        wrong = "" if found.text == expected.text else first_difference(found.text, expected.text)
        yield Check("as written", not wrong, wrong or f"{found.filename}: byte for byte")


def _form(filename: str, root: Element) -> Iterator[Check]:
    """Yield whether a picture is readable: a title, a description, letters that are large enough."""
    strange = next((one.tag for one in root.iter() if one.tag not in _ELEMENTS), None)
    links = [name for one in root.iter() for name in one.attrib if name.endswith("href") or name.startswith("on")]
    ok = root.tag == f"{_NAME}svg" and strange is None and not links
    yield Check("elements", ok, f"{filename}: {strange or (links or ['only shapes and texts'])[0]}")
    in_words = [(root.findtext(_NAME + tag) or "").strip() for tag in ("title", "desc")]
    yield Check("described", all(in_words) and root.get("role") == "img", f"{filename}: title and description")
    style = root.findtext(f"{_NAME}style") or ""
    fonts = [float(size) for size in re.findall(r"font-size:([\d.]+)px", style)]
    box = (root.get("viewBox") or "").split()
    wide = float(box[2]) if len(box) == 4 and re.fullmatch(r"[\d.]+", box[2]) else 0.0
    readable = bool(fonts) and min(fonts) >= _LEAST_FONT and 0 < wide <= _WIDEST
    detail = f"{filename}: letters of {min(fonts, default=0):g} px and more on a page {wide:g} wide"
    yield Check("readable", readable and "prefers-color-scheme:dark" in style, detail)


def _content(name: str, root: Element, account: Account, loads: LinkLoads | None) -> Iterator[Check]:
    """Yield whether a picture draws what the schedule says; the main file is the first picture that there is."""
    links = _marked(root, "data-link")
    if links:
        yield _same_links(links, account, loads)
    if _marked(root, "data-tree"):
        yield _same_trees(root, forest_of(account.shown))
        if not has_trees(account.shown):
            yield _are_transfers(root, account.shown.schedule)
    if _marked(root, "data-row") or name == "load":
        yield _same_cells(root, account, loads)
    if name == "goodput" or not (links or _marked(root, "data-tree") or _marked(root, "data-row")):
        yield _same_points(root, account)


def _marked(root: Element, attribute: str) -> list[Mapping[str, str]]:
    return [one.attrib for one in root.iter() if attribute in one.attrib]


# ---- what is due


def _same_links(links: Sequence[Mapping[str, str]], account: Account, loads: LinkLoads | None) -> Check:
    """Compare the loads of links that are drawn; of a folded network not all are."""
    topology = account.topology
    numbers = [one["data-link"] for one in links]
    if loads is None:
        ok = len(set(numbers)) == len(numbers) <= topology.num_links
        return Check("links", ok, f"{counted(len(numbers), 'link')} drawn; their loads are not added up once more")
    due = {
        str(link): (str(share), f"link k{level_of(busy, loads.most)}")
        for link, (share, busy) in enumerate(zip(loads.share, loads.busy, strict=True))
    }
    found = [(one["data-link"], (one.get("data-load"), one.get("class"))) for one in links]
    wrong = next((f"link {link} has another load" for link, shown in found if due.get(link) != shown), "")
    if len({link for link, _ in found}) != len(found):
        wrong = "a link is drawn twice"
    return Check("links", not wrong, wrong or f"{counted(len(links), 'link')} with the loads of the transfers")


def _same_trees(root: Element, drawn_from: tuple[Forest, int] | None) -> Check:
    if drawn_from is None:
        return Check("trees", False, "the schedule has no trees")
    forest = drawn_from[0]
    found = Counter(
        (one["data-tree"], one.get("data-parent"), one.get("data-child"), one.get("data-share"))
        for one in _marked(root, "data-tree")
    )
    drawn = {tree for tree, *_ in found}
    rows = zip(forest.tree.tolist(), forest.parent.tolist(), forest.child.tolist(), strict=True)
    due = Counter((str(t), str(a), str(b), str(forest.share(t))) for t, a, b in rows if str(t) in drawn)
    number = f"{counted(len(drawn), 'tree')} with {counted(sum(found.values()), 'edge')}"
    return Check("trees", found == due, number if found == due else "the edges are not those of the forest")


def _are_transfers(root: Element, level: Scheduled) -> Check:
    """Look up every edge of a schedule in steps among its transfers: its ranks, in the direction of the data."""
    steps = level.seed if isinstance(level, SymmetricSchedule) else level
    assert isinstance(steps, Schedule), "a schedule by trees has its own"
    sent = set(zip(steps.src.tolist(), steps.dst.tolist(), strict=True))
    ends = [(int(one["data-parent"]), int(one["data-child"])) for one in _marked(root, "data-tree")]
    wrong = next((f"{a} and {b}" for a, b in ends if (a, b) not in sent and (b, a) not in sent), "")
    return Check("transfers", not wrong, f"{wrong} exchange nothing" if wrong else f"{counted(len(ends), 'edge')} sent")


def _same_cells(root: Element, account: Account, loads: LinkLoads | None) -> Check:
    cells = _marked(root, "data-row")
    if loads is None:
        return Check("cells", True, f"{counted(len(cells), 'cell')}; loads are not added up once more")
    members = LoadMatrix.of(account.topology, loads).members
    place = np.zeros(account.topology.num_nodes, dtype=np.int64)
    for number, nodes in enumerate(members):
        place[list(nodes)] = number
    due: dict[tuple[str, str], tuple[int, Fraction]] = {}
    ends = zip(place[account.topology.src].tolist(), place[account.topology.dst].tolist(), strict=True)
    for (a, b), share in zip(ends, loads.share, strict=True):
        count, most = due.get((str(a), str(b)), (0, Fraction(0)))
        due[str(a), str(b)] = count + 1, max(most, share)
    found = [(one["data-row"], one.get("data-column"), one.get("data-links"), one.get("data-load")) for one in cells]
    needed = [(*key, str(count), str(share)) for key, (count, share) in due.items()]
    same = Counter(found) == Counter(needed)
    return Check("cells", same, f"{counted(len(cells), 'cell')}" if same else "a cell is not that of its links")


def _same_points(root: Element, account: Account) -> Check:
    """Compare the tips of points with the times of the contenders."""
    texts = [one.text or "" for one in root.iter(f"{_NAME}title")]
    found = Counter(one for one in texts if re.fullmatch(r"[\d.]+ \w+: .+, .+", one))
    due = Counter(tip for curve in curve_tips(account) for tip in curve)
    same = found == due
    detail = f"{counted(sum(due.values()), 'point')} of {counted(len(account.contenders), 'curve')}"
    return Check("points", same, detail if same else "a point is not that of its curve")
