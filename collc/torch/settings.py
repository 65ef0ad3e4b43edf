"""The specification of a process: the configured one, else that of the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction

import attrs

from collc.ir.diagnostic import error

__all__ = ["CACHE", "COLLECTIVES", "DEFINES", "ENGINE", "REPLACE", "SPEC", "STATS", "Settings", "configure", "settings"]

#: a `.coll` file, or a printed schedule or program
SPEC = "COLLC_SPEC"
#: its parameters, a JSON object
DEFINES = "COLLC_DEFINES"
#: the names of the collectives to serve, a JSON list; all without it
COLLECTIVES = "COLLC_COLLECTIVES"
#: the folder of the cache; programs are compiled each time without it
CACHE = "COLLC_CACHE"
#: 1: print the served calls at the end
STATS = "COLLC_STATS"
#: 0: messages go over gloo, without the compiled engine
ENGINE = "COLLC_TORCH_ENGINE"
#: the backend that collc replaces in programs
REPLACE = "COLLC_TORCH_REPLACE"

Param = int | Fraction | str | bool | tuple[int, ...]


@attrs.frozen
class Settings:
    """A specification: its file, values for its parameters, and the collectives to serve (none named: all)."""

    spec: str
    defines: tuple[tuple[str, Param], ...] = ()
    collectives: tuple[str, ...] = ()


_configured: Settings | None = None


def configure(spec: str | os.PathLike[str] | None, defines: Mapping[str, object] | None = None) -> None:
    """Set the specification of new process groups; None returns to that of the environment.

    ``spec`` is a ``.coll`` file or a printed schedule or program, ``defines`` the values of its parameters. The first
    group reads it. Raises CollcError (C0091) for impossible values.
    """
    global _configured
    _configured = None if spec is None else Settings(os.path.abspath(spec), _checked(defines or {}, "defines"))


def settings() -> Settings:
    """Return the configured settings, else those of the environment; raises C0090, C0091."""
    if _configured is not None:
        return _configured
    spec = os.environ.get(SPEC, "")
    if not spec:
        raise error(
            "C0090",
            "no specification for the backend `collc`",
            notes=[f'found neither collc.torch.configure("cluster.coll") nor {SPEC} in the environment'],
            hint=f"set {SPEC} to a `.coll` file, or start with `collc launch cluster.coll -- torchrun ..`",
        )
    return Settings(os.path.abspath(spec), _from_environment(), _chosen())


_NAMES = f"""{COLLECTIVES}='["sums", "parts"]'"""


def _chosen() -> tuple[str, ...]:
    text = os.environ.get(COLLECTIVES) or "[]"
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise error("C0091", f"{COLLECTIVES} is not JSON: {problem}", hint=_NAMES) from None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise error("C0091", f"{COLLECTIVES} is not a JSON list of names: `{text}`", hint=_NAMES)
    return tuple(found)


def _from_environment() -> tuple[tuple[str, Param], ...]:
    text = os.environ.get(DEFINES) or "{}"
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise _wrong(f"{DEFINES} is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise _wrong(f"{DEFINES} is not a JSON object: `{text}`")
    return _checked(found, DEFINES)


def _checked(defines: Mapping[str, object], where: str) -> tuple[tuple[str, Param], ...]:
    pairs = []
    for name, value in sorted(defines.items()):
        if isinstance(value, (list, tuple)) and all(type(v) is int for v in value):
            value = tuple(value)
        elif not isinstance(value, (bool, int, str, Fraction)):
            raise _wrong(f"{where} gives `{name}` the value {value!r}")
        pairs.append((name, value))
    return tuple(pairs)


def _wrong(message: str) -> Exception:
    return error(
        "C0091",
        message,
        notes=["a parameter is a number, a text, true or false, or a list of numbers"],
        hint=f"""{DEFINES}='{{"boxes": 4}}'""",
    )
