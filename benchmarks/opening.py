"""How fast the report opens: the bytes of a page, and the time until a browser can use it.

    python benchmarks/opening.py [--runs N] [--page FILE.html ..]

Each page is opened N times in a new tab of a headless Chromium (`apt-get install chromium`, `pip install playwright`).
`open` is the time from the navigation to the end of the `load` event, when the texts and tables are there. `drawn` is
the time until the figures near the screen are drawn and painted, with controls that work. `step` is the time to move
the slider of the first section by one step and paint all figures of the page again, after all were drawn. All are
milliseconds, the least of N runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # Any: tabs of playwright, which may not be installed

import collc

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from report_pages import browser

#: what the page is about -> its specification
SPECS = {
    "18 ranks, torus(3, 3, 2), allreduce": "topology t = torus(3, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };\n"
    "collective c = allreduce on t { size: 64 MiB }; schedule c using bfb; emit c as msccl-xml;",
    "18 ranks, torus(3, 3, 2), 3 collectives": "topology t = torus(3, 3, 2);\ncollective a = allreduce on t;\n"
    "collective b = allgather on t; collective c = alltoall on t;",
    "1,024 ranks, torus(32, 32), allreduce": "collective c = allreduce on torus(32, 32); schedule c using bfb;",
    "1,024 ranks, dgx_h100(128), allreduce":
    "collective c = allreduce on dgx_h100(128); schedule c using forest { k: 1 };",
    "1,024 ranks, jellyfish(1024, 6, 1), allgather": "collective c = allgather on jellyfish(1024, 6, 1);\n"
    "schedule c using bfb;",
}  # fmt: skip

_FRAMES = "await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));"
_LOADED = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
_DRAWN = f"async () => {{ {_FRAMES} return performance.now(); }}"
_STEP = f"""async () => {{
  dispatchEvent(new Event('beforeprint'));
  {_FRAMES}
  const slider = document.querySelector('input[type=range]');
  if (!slider || slider.max === slider.min) return null;
  const begin = performance.now();
  slider.value = Number(slider.value) < Number(slider.max) ? Number(slider.value) + 1 : slider.min;
  slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
  {_FRAMES}
  return performance.now() - begin;
}}"""


def times(chromium: Any, path: Path) -> tuple[float, float, float | None]:  # Any: see above
    """Return the milliseconds of one opening: until it is loaded, until its figures are drawn, of a step."""
    tab = chromium.new_page(viewport={"width": 1600, "height": 900})
    try:
        tab.goto(path.as_uri(), wait_until="load")
        drawn = tab.evaluate(_DRAWN)
        return tab.evaluate(_LOADED), drawn, tab.evaluate(_STEP)
    finally:
        tab.close()


def rows(pages: dict[str, Path], runs: int) -> Iterator[str]:
    """Yield a line of a Markdown table for each page."""
    with browser() as chromium:
        for name, path in pages.items():
            found = [times(chromium, path) for _ in range(runs)]
            least = [min((one[k] for one in found if one[k] is not None), default=None) for k in range(3)]
            cells = ["-" if one is None else f"{one:,.0f}" for one in least]
            yield f"| {name} | {path.stat().st_size / 1e6:.2f} | {' | '.join(cells)} |"


def main() -> None:
    """Open all pages and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="openings of each page (7)")
    parser.add_argument("--page", type=Path, nargs="*", help="pages to open instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages = {str(path): path.resolve() for path in options.page or ()}
        for number, (name, text) in enumerate(SPECS.items() if not pages else ()):
            pages[name] = Path(folder, f"{number}.html")
            (page,) = collc.compile_source(text, target="report").files.values()
            pages[name].write_text(page.text, "utf-8")
        print("| Page | MB | open (ms) | drawn (ms) | step (ms) |\n|---|---|---|---|---|")
        for row in rows(pages, options.runs):
            print(row, flush=True)


if __name__ == "__main__":
    main()
