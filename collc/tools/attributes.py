"""A file of the language with the measured bandwidth and latency of links."""

from __future__ import annotations

import re

from collc.ir.diagnostic import error

from .calibration import Calibration

__all__ = ["attribute_file", "require_name"]

_RATES = (("Tbps", 1e12), ("Gbps", 1e9), ("Mbps", 1e6), ("Kbps", 1e3), ("bps", 1.0))
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def attribute_file(fit: Calibration, name: str = "measured", source: str = "") -> str:
    """Return declarations to include: ``NAME_bandwidth`` and ``NAME_latency``, for the ``with`` of a topology.

    The latencies of larger messages are ``NAME_latency_above_BYTES``, the overhead of a call is ``NAME_call``, and what
    a rank adds is ``NAME_reduction``.
    """
    require_name(name)
    origin = f" from {source}" if source else ""
    lines = [
        f"# What `collc calibrate` found{origin}: {len(fit.points)} measurements,",
        f"# deviations {100 * fit.mean_deviation:.2g} % on average and {100 * fit.largest_deviation:.2g} % at most.",
        "#",
        f"#     topology pod = torus(3, 3) with {{ {_defaults(fit, name)} }};",
        "",
        f"let {name}_bandwidth = {_quantity(8 * fit.bandwidth, _RATES)};  # of a link",
    ]
    for place, (_, alpha) in enumerate(fit.alphas):
        above = fit.alphas[place - 1][0] if place else None
        ending = "" if above is None else f"_above_{round(above)}"
        what = "of a step" if above is None else f"of a step whose messages have more than {round(above)} bytes"
        lines.append(f"let {name}_latency{ending} = {_quantity(alpha, _TIMES)};  # {what}")
    if fit.overhead is not None:
        lines.append(f"let {name}_call = {_quantity(fit.overhead, _TIMES)};  # of every call, whatever its steps")
    if fit.gamma:
        lines.append(f"let {name}_reduction = {_quantity(8 / fit.gamma, _RATES)};  # that a rank adds")
    return "\n".join(lines) + "\n"


def _defaults(fit: Calibration, name: str) -> str:
    """Return the attributes as the ``with`` of a topology takes them."""
    found = [f"bandwidth: {name}_bandwidth", f"latency: {name}_latency"]
    found += [f"reduction: {name}_reduction"] if fit.gamma else []
    found += [f"launch: {name}_call"] if fit.overhead is not None else []
    return ", ".join(found)


def require_name(name: str) -> None:
    """Raise C0001 for a text that cannot begin a name of the language."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        message = f"option `--name` needs a name of the language, found `{name}`"
        raise error("C0001", message, hint="letters, digits and `_`", exit_status=2)


def _quantity(value: float, units: tuple[tuple[str, float], ...]) -> str:
    """Return six digits and a unit, as in the language, without exponents."""
    unit, size = next(((unit, size) for unit, size in units if value >= size), units[-1])
    shown = value / size
    return f"{shown:.{max(0, 5 - len(str(int(shown))) + 1)}f} {unit}"
