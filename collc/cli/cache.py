"""The option ``--cache`` of ``collc compile``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

from collc.ir.diagnostic import CollcError, warning
from collc.ir.spec import Spec

from ..compiling import Request
from ..driver import keeping
from ..driver.compilation import Job
from ..driver.result import CollectiveResult
from ..files.store import Store, default_folder, opened
from ..files.texts import STDIN
from .console import Console
from .inputs import settings

__all__ = ["kept_or_run", "key_of_inputs"]


def kept_or_run(
    spec: Spec, path: str, jobs: Sequence[Job], options: SimpleNamespace, console: Console,
    run: Callable[[], list[CollectiveResult]],
) -> list[CollectiveResult]:  # fmt: skip
    """Return results from the cache of ``--cache``, or those of ``run``, which the cache keeps then.

    Options that show how a file was compiled compile it.
    """
    store = _store(options.cache[-1], console)
    if store is None:
        return run()
    key = key_of_inputs(spec, path, options, console)
    shows = options.json or options.dump_ir or options.print_pipeline or options.time_passes or options.profile
    results = keeping.kept_or_run(store, key, jobs, settings(options), run, reads=not shows)
    if any(result.is_kept for result in results):
        console.say(f"took the files from the cache in {store.folder}")
    return results


def key_of_inputs(spec: Spec, path: str, options: SimpleNamespace, console: Console) -> str | None:
    """Return the hash of everything that determines the results of a command for a file."""
    name = "<stdin>" if path == STDIN else path
    request = Request(
        options.target, dict(options.D), None, options.I, options.collective, options.O, options.passes,
        options.disable_pass, options.verify, options.node_limit,
    )  # fmt: skip
    return keeping.key_of(spec, console.inputs[name], name, [*request.facts, "command"], {})


def _store(folder: str, console: Console) -> Store | None:
    if folder:
        return opened(os.path.abspath(folder))
    try:
        return opened(default_folder(os.environ))
    except CollcError as flaw:
        console.warn([warning("C0085", flaw.diagnostics[0].message, notes=["collc compiles without a cache"])])
        return None
