"""The language server as a process of its own, asked by the client of pygls over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from commands import COMMAND, spawn

from collc.cli.tasks import EXAMPLES

pytest.importorskip("pygls", reason="pygls is not installed")

from lsprotocol import types
from pygls import uris
from pygls.lsp.client import LanguageClient

pytestmark = pytest.mark.slow

T = TypeVar("T")
TEXT = """\
# a torus
param n = 3;
topology pod = torus(n, 3, 2) with { bandwidth: 25 Gbps, latency: 10 us };
collective grads = allreduce on pod { size: 64 MiB };
schedule grads using bfb;
emit grads as msccl-xml;
"""
SECONDS = 30


class Editor:
    """A client with its own thread, and the diagnostics that it was sent."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.client = LanguageClient("test", "1")
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.arrived = threading.Condition()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._publish(params))
        self.client.feature(types.WINDOW_LOG_MESSAGE)(lambda _: None)
        self.run(self.client.start_io(str(COMMAND), "lsp", *arguments, cwd=folder))
        request = types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=folder.as_uri())
        self.abilities = self.run(self.client.initialize_async(request)).capabilities
        self.client.initialized(types.InitializedParams())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        with self.arrived:
            self.published[params.uri] = params
            self.arrived.notify_all()

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> list[types.Diagnostic]:
        """Open a file and return its diagnostics."""
        self.published.pop(self.uri(name), None)
        item = types.TextDocumentItem(self.uri(name), "coll", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return self.diagnostics(name, 1)

    def change(self, name: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace a part of a file, as typing does."""
        part = types.Range(types.Position(*start), types.Position(*end))
        event = types.TextDocumentContentChangePartial(part, text)
        document = types.VersionedTextDocumentIdentifier(version, self.uri(name))
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [event]))

    def diagnostics(self, name: str, version: int) -> list[types.Diagnostic]:
        """Return the diagnostics of a version, when they arrive."""
        uri = self.uri(name)
        with self.arrived:
            there = self.arrived.wait_for(
                lambda: uri in self.published and self.published[uri].version == version, SECONDS
            )
        assert there, "no diagnostics arrived"
        return list(self.published[uri].diagnostics)

    def at(self, name: str, line: int, character: int) -> tuple[types.TextDocumentIdentifier, types.Position]:
        return types.TextDocumentIdentifier(self.uri(name)), types.Position(line, character)

    def hover(self, name: str, line: int, character: int) -> str:
        found = self.run(self.client.text_document_hover_async(types.HoverParams(*self.at(name, line, character))))
        assert found is None or isinstance(found.contents, types.MarkupContent)
        return found.contents.value if found else ""

    def offered(self, name: str, line: int, character: int) -> dict[str, types.CompletionItem]:
        params = types.CompletionParams(*self.at(name, line, character))
        found = self.run(self.client.text_document_completion_async(params))
        assert isinstance(found, list)
        return {one.label: one for one in found}

    def definition(self, name: str, line: int, character: int) -> tuple[str, int, int] | None:
        params = types.DefinitionParams(*self.at(name, line, character))
        found = self.run(self.client.text_document_definition_async(params))
        assert found is None or isinstance(found, types.Location)
        return found and (os.path.basename(uris.to_fs_path(found.uri) or ""), found.range.start.line,
                          found.range.start.character)  # fmt: skip

    def close(self) -> int | None:
        """End the server as editors do, and return its exit status."""
        self.run(self.client.shutdown_async(None))
        self.client.exit(None)
        server = self.client._server
        assert server is not None
        status = self.run(server.wait())
        self.run(self.client.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        return status


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("site"))
    yield editor
    assert editor.close() == 0


# ---- diagnostics


def as_said(found: list[types.Diagnostic]) -> list[tuple[object, ...]]:
    """Return code, severity, place and message of diagnostics of the protocol."""
    return [
        (one.code, one.severity, one.range.start.line + 1, one.range.start.character + 1, one.range.end.line + 1,
         one.range.end.character + 1, one.message)
        for one in found
    ]  # fmt: skip


def as_printed(folder: Path, name: str) -> list[tuple[object, ...]]:
    """Return the same of what the command line prints."""
    done = spawn("check", name, "--diagnostics-format=json", cwd=folder)
    found = []
    for one in json.loads(done.stderr)["diagnostics"]:
        place = one["location"]
        said = [
            one["message"],
            *(f"note: {n}" for n in one["notes"]),
            *([f"hint: {one['hint']}"] if one["hint"] else []),
        ]
        severity = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}[
            one["severity"]
        ]
        found.append((one["code"], severity, place["line"], place["column"], place["end_line"], place["end_column"],
                      "\n".join(said)))  # fmt: skip
    return found


WRONG = {
    "names": TEXT.replace("using bfb", "using bfs").replace("on pod", "on pood"),
    "syntax": TEXT.replace("pod = torus", "pod torus").replace("msccl-xml;", "msccl-xml"),
    "options": TEXT.replace("using bfb", "using bfb { relax: 7 }").replace("size", "sice"),
    "unreachable": "topology t { rank a, b; link a -> b; }\ncollective c = allgather on t;\n",
    "warning": "topology t { rank a, b; link a <-> b; link a <-> a; }\ncollective c = allgather on t;\n",
    "by hand": "topology t = biring(3);\ncollective c = allgather on t;\nschedule c using steps {\n"
    "  at 0: send shard 1 from 0 to 1;\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_diagnostics_are_those_of_the_command_line(editor: Editor, case: str) -> None:
    name = f"{case.replace(' ', '_')}.coll"
    (editor.folder / name).write_text(WRONG[case])
    found = as_said(editor.open(name, WRONG[case]))
    assert found and sorted(found, key=str) == sorted(as_printed(editor.folder, name), key=str)


def test_diagnostics_follow_the_typing(editor: Editor) -> None:
    name = "typed.coll"
    assert editor.open(name, TEXT) == []
    for version in range(2, 8):  # each letter is a version; those in between need no answer
        editor.change(name, version, (4, 21 + version), (4, 21 + version), "x")
    (wrong,) = editor.diagnostics(name, 7)
    assert (wrong.code, wrong.range.start, wrong.range.end) == ("C0124", types.Position(4, 21), types.Position(4, 30))
    assert wrong.source == "collc" and "unknown scheduler `bfxxxxxxb`" in wrong.message.replace(
        "bfbxxxxxx", "bfxxxxxxb"
    )
    editor.change(name, 8, (4, 21), (4, 30), "bfb")
    assert editor.diagnostics(name, 8) == []


def test_places_count_as_editors_count(editor: Editor) -> None:
    """UTF-16 units: a character beyond the basic plane is two of them."""
    (wrong,) = editor.open("units.coll", 'include "\U0001f600.coll"; param \U0001f600 = 2;')[:1]
    assert wrong.range.start == types.Position(0, 8) and wrong.range.end.character in (17, 18)


def test_a_second_place_is_related(editor: Editor) -> None:
    found = editor.open("twice.coll", "param n = 1;\nparam n = 2;\n")
    (related,) = found[0].related_information or []
    assert (related.location.uri, related.location.range.start) == (editor.uri("twice.coll"), types.Position(0, 6))


def test_a_mistake_in_an_included_file_is_shown_at_its_include(editor: Editor) -> None:
    (editor.folder / "broken.coll").write_text("param rail = ;\n")
    (wrong,) = editor.open("main.coll", '# main\ninclude "broken.coll";\n')
    assert wrong.range == types.Range(types.Position(1, 8), types.Position(1, 21))
    assert wrong.message.startswith(f"{editor.folder}/broken.coll:1:14: ")
    assert (wrong.related_information or [])[0].location.uri == editor.uri("broken.coll")
    (editor.folder / "broken.coll").write_text("param rail = 4;\n")
    editor.published.clear()
    saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(editor.uri("broken.coll")))
    editor.client.text_document_did_save(saved)
    assert editor.diagnostics("main.coll", 1) == []


def test_a_closed_file_has_no_diagnostics(editor: Editor) -> None:
    assert editor.open("closed.coll", "param")
    document = types.TextDocumentIdentifier(editor.uri("closed.coll"))
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
    assert editor.diagnostics("closed.coll", None) == []  # type: ignore[arg-type]


# ---- answers


def test_hover(editor: Editor) -> None:
    editor.open("hover.coll", TEXT)
    assert editor.hover("hover.coll", 3, 33) == "**pod**: 18 ranks, 108 links, degree 6, diameter 3"
    assert "`torus(" in editor.hover("hover.coll", 2, 17)
    assert editor.hover("hover.coll", 4, 22).startswith("**bfb**: ")
    assert editor.hover("hover.coll", 5, 15).startswith("**msccl-xml**: MSCCL-XML for GPU runtimes")
    assert editor.hover("hover.coll", 2, 38) == "**bandwidth**: bandwidth of every link that has none of its own"
    assert editor.hover("hover.coll", 0, 3) == editor.hover("hover.coll", 1, 11) == ""
    cost = editor.hover("hover.coll", 4, 10)
    (editor.folder / "cost.coll").write_text(TEXT)
    printed = spawn("cost", "cost.coll", "--color=never", cwd=editor.folder).stdout.rstrip()
    assert cost == f"**grads**: allreduce on pod, using bfb\n\n```text\n{printed}\n```"
    assert "T_B        17/9 M/B" in cost


def test_hover_after_a_mistake_uses_the_last_text_that_was_right(editor: Editor) -> None:
    editor.open("last.coll", TEXT)
    editor.change("last.coll", 2, (1, 10), (1, 11), "")
    assert editor.diagnostics("last.coll", 2)
    assert editor.hover("last.coll", 3, 33).startswith("**pod**: 18 ranks")
    assert "No cost: " in editor.hover("last.coll", 4, 10)


def test_completion(editor: Editor) -> None:
    editor.open("names.coll", TEXT + "schedule grads using ")
    found = editor.offered("names.coll", 6, 21)
    assert {"bfb", "forest", "auto"} <= set(found) and "torus" not in found
    assert found["forest"].detail and found["forest"].kind == types.CompletionItemKind.Variable
    editor.change("names.coll", 2, (6, 0), (6, 21), "collective x = ")
    assert {"allreduce", "reduce-scatter"} <= set(editor.offered("names.coll", 6, 15))
    editor.change("names.coll", 3, (6, 0), (6, 15), "topology x = to")
    found = editor.offered("names.coll", 6, 15)
    assert {"pod", "n", "torus", "without"} <= set(found) and "x" not in found


def test_definition(editor: Editor) -> None:
    (editor.folder / "site.coll").write_text("# site\nlet rail = 25 GB/s;\n")
    text = 'include "site.coll";\ntopology t = biring(4) with { bandwidth: rail };\ncollective c = allgather on t;\n'
    editor.open("defined.coll", text)
    assert editor.definition("defined.coll", 2, 28) == ("defined.coll", 1, 9)
    assert editor.definition("defined.coll", 1, 42) == ("site.coll", 1, 4)
    assert editor.definition("defined.coll", 0, 12) == ("site.coll", 0, 0)
    assert editor.definition("defined.coll", 1, 15) is None


def test_formatting(editor: Editor) -> None:
    text = "# \U0001f600\ntopology   t=torus( 3,3 );  # end \U0001f600"
    editor.open("form.coll", text)
    params = types.DocumentFormattingParams(
        types.TextDocumentIdentifier(editor.uri("form.coll")), types.FormattingOptions(2, True)
    )
    (edit,) = editor.run(editor.client.text_document_formatting_async(params)) or []
    assert edit.new_text == spawn("format", "-", cwd=editor.folder, stdin=text).stdout
    assert edit.range == types.Range(types.Position(0, 0), types.Position(1, 36))
    editor.change("form.coll", 2, (0, 0), (1, 36), edit.new_text)
    found = editor.run(editor.client.text_document_formatting_async(params))
    assert found is not None and list(found) == []
    editor.change("form.coll", 3, (0, 0), (0, 0), "topology ")
    assert editor.run(editor.client.text_document_formatting_async(params)) is None


def test_the_server_says_what_it_can(editor: Editor) -> None:
    able = editor.abilities
    assert able.hover_provider and able.definition_provider and able.document_formatting_provider
    assert able.completion_provider and able.text_document_sync


# ---- the process


def test_options_set_parameters_and_folders(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "rail.coll").write_text("let rail = 25 GB/s;\n")
    text = 'include "rail.coll";\nparam n = 3;\ntopology t = biring(n) with { bandwidth: rail };\n'
    text += "collective c = allgather on t { size: 1 MiB };\nschedule c using bfb;\n"
    editor = Editor(tmp_path, "-I", "site", "-D", "n=5", "--node-limit", "100")
    try:
        assert editor.open("a.coll", text) == []
        assert editor.hover("a.coll", 3, 28).startswith("**t**: 5 ranks")
        assert "c: allgather on 5 ranks" in editor.hover("a.coll", 4, 9)
        assert editor.definition("a.coll", 2, 42) == ("rail.coll", 0, 4)
        editor.change("a.coll", 2, (2, 13), (2, 22), "torus(11, 11)")
        assert [one.code for one in editor.diagnostics("a.coll", 2)] == ["C0310"]
    finally:
        assert editor.close() == 0


def test_a_cost_that_takes_long_is_left_out(tmp_path: Path) -> None:
    from collc.lsp.costing import cost_text

    text = "collective c = allreduce on torus(6, 6, 6);\nschedule c using bfb;\n"
    assert "takes more than 0.01 s. `collc cost --collective c`" in asyncio.run(
        cost_text(text, str(tmp_path), "c", seconds=0.01)
    )
    (tmp_path / "attrs.py").write_text("1 / 0\n")
    assert "c: allreduce on 216 ranks" in asyncio.run(cost_text(text, str(tmp_path), "c", seconds=SECONDS))
    assert asyncio.run(cost_text("collective c", str(tmp_path), "c", seconds=SECONDS)).startswith("No cost: ")


def test_without_pygls_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ImportError('no pygls', name='pygls')\n")
    done = spawn("lsp", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "`collc lsp` needs the package pygls, version 2 or later: no pygls [C0099]" in done.stderr
    assert "hint: install it: pip install 'collc[lsp]'" in done.stderr


def test_only_this_verb_loads_pygls() -> None:
    program = "import sys; from collc.cli import main; main(['check', '-']); print('pygls' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], input="param n = 1;", capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", EXAMPLES["lsp"])
def test_the_end_of_input_ends_the_server(tmp_path: Path, command: str) -> None:
    done = spawn(*command.split()[1:], cwd=tmp_path, stdin=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
