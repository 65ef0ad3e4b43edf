"""`import`: networks in files of machines and fabrics, and the figures that the files lack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

import attrs

from collc.ir.diagnostic import CollcError, Diagnostic, Related, Source, error
from collc.ir.topology import Topology

from ..importing import IMPORTS, MOST_BYTES
from ..importing import read as read_network
from ..importing.figures import Figures, Gpu, bandwidth_of, gpu_named
from ..importing.formats import nearest_format
from ..importing.model import Imported
from ..source import read
from ..units import BANDWIDTH, SIZE
from . import ast
from .expressions import Compiler
from .files import Files
from .limits import Limits
from .origins import with_origins
from .requests import text_of, word_of
from .scope import THE_IMPORT, Poisoned, Problems, Scope
from .unit_hints import other_measure
from .values import Quantity, Value, kind_of

__all__ = ["FIGURES", "Imports", "figures", "is_figure"]

#: the options of ``with`` that give figures; besides them ``tier-NAME``
FIGURES = ("gpu", "gpu-link", "nic", "size", "choose")
_TIER = "tier-"
_NO_NICS = "none"


def is_figure(item: ast.Option) -> bool:
    """Return whether an option of ``with`` gives a figure that an imported file may lack."""
    return item.name.text in FIGURES or item.name.text.startswith(_TIER)


@attrs.define
class Imports:
    """Reads the files that `import` names, each once; ``sources`` are all files that were read, in order."""

    files: Files
    limits: Limits
    problems: Problems
    sources: list[Source]
    _texts: dict[str, Source] = attrs.field(factory=dict)

    def topology(self, path: ast.String, format: ast.Word | None, given: Figures, name: str) -> Topology:
        """Return the network in a file as a topology; raise CollcError for a file that is not found, or with the
        mistakes in it.
        """
        if format is not None and format.text not in IMPORTS:
            message = f"there is no format `{format.text}` to import"
            raise error("C0922", message, span=format.span, hint=nearest_format(format.text))
        source = self._source(path)
        network = self._network(source, path, format, given)
        for warning in network.warnings:
            self.problems.warn(_placed(warning, path), each=True)
        links = sum(cable.count * (1 + cable.duplex) for cable in network.cables)
        self.limits.claim(f"`{path.value}`", len(network.ranks) + len(network.switches), links, path.span)
        return network.topology(name)

    def _network(self, source: Source, path: ast.String, format: ast.Word | None, given: Figures) -> Imported:
        limited = attrs.evolve(given, node_limit=self.limits.nodes)
        try:
            return read_network([source], limited, format.text if format else None)
        except CollcError as failure:
            raise CollcError([_placed(one, path) for one in failure.diagnostics]) from None

    def _source(self, path: ast.String) -> Source:
        found = self.files.found(path)
        real = os.path.realpath(found)
        if real not in self._texts:
            hidden = not self.files.is_inside(real)
            source = read(
                found, span=path.span, regular=True, hidden=hidden, most=MOST_BYTES, pasted=True,
                hint="import a text file",
            )  # fmt: skip
            self._texts[real] = source
            self.sources.append(source)
        return self._texts[real]


def _placed(found: Diagnostic, path: ast.String) -> Diagnostic:
    """Return what a reader found, with the place of the import: its only place, or the second."""
    if found.code == "C0921" and path.value.endswith(".coll"):
        hint = f'declarations of another file are included: `include "{path.value}";`'
        return attrs.evolve(found, span=path.span, hint=hint)
    if found.span is None or path.span is None:
        return attrs.evolve(found, span=path.span)
    return attrs.evolve(found, related=(*found.related, Related(THE_IMPORT, path.span)))


# ---- figures


def figures(items: Sequence[ast.Option], scope: Scope, compiler: Compiler) -> Figures:
    """Return the figures among options; mistakes go to the compiler's problems, then raises Poisoned."""
    found, wrong = Figures(), False
    for item in sorted(items, key=lambda one: one.name.text == "gpu-link"):  # it replaces what the model has
        try:
            found = _with_figure(found, item, scope, compiler)
        except CollcError as failure:
            compiler.problems.take(with_origins(failure, item, scope, []), item.span)
            wrong = True
        except Poisoned:
            wrong = True
    if wrong:
        raise Poisoned
    return found


def _with_figure(found: Figures, item: ast.Option, scope: Scope, compiler: Compiler) -> Figures:
    match item.name.text:
        case "gpu":
            model = _text(item, scope, "a model such as `h100`")
            return attrs.evolve(found, gpu=gpu_named(model, item.value.span))
        case "gpu-link":
            return attrs.evolve(found, gpu=_with_link(found.gpu, _bandwidth(item, scope, compiler)))
        case "nic":
            if word_of(item.value, scope) == _NO_NICS:
                return attrs.evolve(found, nic=Fraction(0))
            return attrs.evolve(found, nic=_bandwidth(item, scope, compiler))
        case "size":
            return attrs.evolve(found, size=_bytes(item, scope, compiler))
        case "choose":
            return attrs.evolve(found, choice=_text(item, scope, "a name in the file"))
        case tier:
            bandwidth = _bandwidth(item, scope, compiler)
            return attrs.evolve(found, tiers={**found.tiers, tier.removeprefix(_TIER): bandwidth})


def _with_link(gpu: Gpu | None, link: Fraction) -> Gpu:
    name, links = (gpu.name, gpu.links) if gpu else ("GPU", 0)
    return Gpu(name, link, links, "given as `gpu-link`")


def _text(item: ast.Option, scope: Scope, need: str) -> str:
    if text := word_of(item.value, scope):
        return text
    span = item.value.span
    hint = f'write it in quotes: `"{text_of(item.value)}"`'
    raise error("C0131", f"found an expression, needed {need}", span=span, hint=hint)


def _evaluated(item: ast.Option, scope: Scope, compiler: Compiler, measure: str) -> Value:
    if isinstance(item.value, ast.Word):
        raise error("C0131", f"found the word `{item.value.text}`, needed a quantity", span=item.value.span)
    return compiler.evaluate(item.value, scope, (measure,))


def _bandwidth(item: ast.Option, scope: Scope, compiler: Compiler) -> Fraction:
    value = _evaluated(item, scope, compiler, BANDWIDTH)
    if isinstance(value, str):
        return bandwidth_of(value, item.value.span)
    return _amount(item, value, BANDWIDTH, "a bandwidth such as `400 Gbps`")


def _bytes(item: ast.Option, scope: Scope, compiler: Compiler) -> int:
    size = _amount(item, _evaluated(item, scope, compiler, SIZE), SIZE, "a size such as `1 MB`")
    if size.denominator != 1:
        raise error("C0129", f"found {float(size):g} B, needed a whole number of bytes", span=item.value.span)
    return size.numerator


def _amount(item: ast.Option, value: Value, measure: str, need: str) -> Fraction:
    span = item.value.span
    if not isinstance(value, Quantity) or value.measure != measure:
        hint = other_measure(value, (measure,)) if isinstance(value, Quantity) else None
        raise error("C0131", f"found {kind_of(value)}, needed {need}", span=span, hint=hint)
    if value.value <= 0:
        raise error("C0315", f"found {kind_of(value)} that is not positive, needed one above 0", span=span)
    return value.value
