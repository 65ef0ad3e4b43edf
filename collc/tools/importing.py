"""Files of machines and fabrics as one `.coll` file, which is read back before it is given out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import attrs

from collc.frontends import coll
from collc.frontends.importing import IMPORTS, MOST_BYTES, read, recognized
from collc.frontends.importing.coll_text import comments, identifier, topology_text
from collc.frontends.importing.figures import Figures, Gpu, gpu_named
from collc.frontends.importing.formats import completes, reader
from collc.frontends.importing.model import Imported, Note
from collc.ir.diagnostic import CollcError, Diagnostic, Source, error, nearest
from collc.ir.frozen import frozen
from collc.ir.shown import counted, listed
from collc.ir.topology import Topology

from ..files.texts import Output, write_all
from ..messages.internal import InternalError
from .joining import Joined, Joining, Named, join

if TYPE_CHECKING:
    import pandas

__all__ = ["ImportedNetwork", "Request", "figures_of", "import_texts", "known_collective"]

#: codes of a text that is too long for the language
_LIMITS = ("C0119", "C0310")


@frozen
class Request:
    """The texts to import, the name of the network, what they lack, and the format if it is not to be recognized."""

    sources: tuple[Source, ...]
    name: str
    figures: Figures = Figures()
    format: str | None = None
    joining: Joining | None = None
    collectives: tuple[str, ...] = ()


@frozen(eq=False)
class ImportedNetwork:
    """An imported network: the ``text`` of its `.coll` file, and the ``topologies`` that the text declares, by name.

    ``name`` is the name of the whole network: the machines on their fabric, otherwise the network of the first file.
    ``networks`` are the files' own networks. ``joining`` are the warnings of joining them.

    >>> source = Source("rack.conf", "SwitchName=leaf Nodes=n[1-2]")
    >>> found = import_texts(Request((source,), "rack", figures_of(tiers={"leaf": Fraction(50 * 10**9)})))
    >>> found.topology.names, found.diagnostics
    (('n1', 'n2', 'leaf'), ())
    >>> print(found.text.splitlines()[0])
    # rack.conf (slurm): 2 ranks, 1 switch, 4 links
    """

    text: str = attrs.field(repr=False)
    networks: tuple[Named, ...] = attrs.field(repr=False)
    topologies: dict[str, Topology]
    name: str
    joining: tuple[Diagnostic, ...] = attrs.field(default=(), repr=False)

    @property
    def topology(self) -> Topology:
        """The whole network."""
        return self.topologies[self.name]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The warnings of all readers, in the order of the files, and those of joining them."""
        return (*(warning for one in self.networks for warning in one.network.warnings), *self.joining)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the links of the whole network as a data frame of pandas; raise C0028 without pandas."""
        return self.topology.to_dataframe()

    def _repr_html_(self) -> str:
        """Return the size of the networks and the warnings as a table, for notebooks."""
        from collc.ir.html import html_table

        rows = [
            (name, f"{counted(one.num_ranks, 'rank')}, {one.num_switches} switches, {counted(one.num_links, 'link')}")
            for name, one in self.topologies.items()
        ]
        return html_table(self.name, (), [*rows, *((one.code, one.message) for one in self.diagnostics)])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the text; raise CollcError C0004 if that fails."""
        write_all([Output(os.fspath(path), self.text)])


def import_texts(request: Request) -> ImportedNetwork:
    """Return the `.coll` file of a request; raise CollcError with the mistakes of the texts or of joining them.

    The file is elaborated, and its topologies must be equal to the imported networks.
    """
    for source in (*request.sources, *(request.joining.fabric if request.joining else ())):
        _require_small(source)
    if request.format is not None:
        reader(request.format, request.sources[0])
    names = _Names()
    machines, fabric = _networks(request, names)
    joined = None
    if request.joining and fabric:
        declared = [*(names.another(f"{request.name}_{n}") for n in range(1, len(machines))), request.name]
        joined = join(request.joining, machines, fabric, declared, request.figures)
    networks = (*machines, *([fabric] if fabric else []))
    expected = {one.name: one.network.topology(one.name) for one in networks}
    main = machines[0].name
    if joined:
        main = request.name
        expected[main] = joined.topology
    text = coll.format_text("\n".join(_paragraphs(request, networks, joined, main, names)))
    found = _read_back(request, text)
    if wrong := [name for name, topology in expected.items() if found.get(name) != topology]:
        raise InternalError(f"the text of the topology `{wrong[0]}` is another network than the imported one")
    return ImportedNetwork(text, networks, found, main, joined.warnings if joined else ())


def _read_back(request: Request, text: str) -> dict[str, Topology]:
    """Return the topologies of the text; its places are none that a user knows."""
    try:
        return dict(coll.load(f"{request.name}.coll", text=text, node_limit=request.figures.node_limit).topologies)
    except CollcError as failure:
        if all(one.code in _LIMITS for one in failure.diagnostics):
            raise CollcError([attrs.evolve(one, span=None, related=()) for one in failure.diagnostics]) from None
        raise InternalError(f"the text is refused: {failure}") from failure


def _require_small(source: Source) -> None:
    if len(source.text) > MOST_BYTES:
        raise error("C0119", f"`{source.path}` is longer than {MOST_BYTES >> 20} MiB")


# ---- reading


def _networks(request: Request, names: _Names) -> tuple[list[Named], Named | None]:
    """Return the networks of the files and that of the fabric; raise CollcError with the mistakes of all of them."""
    groups = _groups(request)
    if request.joining is not None:
        _require_machines(groups)
    fabric = _fabric_format(request.joining) if request.joining else None
    alone = len(groups) == 1 and fabric is None
    if alone or fabric:
        names.another(request.name)
    mistakes = list[Diagnostic]()
    found = list[Named]()
    parts = [(format, group, request.name if alone else names.another(_stem(group[0]))) for format, group in groups]
    if request.joining and fabric:
        parts.append((fabric, list(request.joining.fabric), names.another("fabric")))
    for format, group, name in parts:
        files = tuple(source.path for source in group)
        try:
            found.append(Named(name, _named(read(group, request.figures, format), files, alone), files))
        except CollcError as failure:
            mistakes += (_in_files(one, files, alone) for one in failure.diagnostics)
    if mistakes:
        raise CollcError(mistakes)
    return found[: len(groups)], found[-1] if fabric else None


def _named(network: Imported, files: Sequence[str], alone: bool) -> Imported:
    return attrs.evolve(network, warnings=tuple(_in_files(one, files, alone) for one in network.warnings))


def _in_files(found: Diagnostic, files: Sequence[str], alone: bool) -> Diagnostic:
    """Return what a reader found with a note of its files, if it has no place and several networks are read."""
    if alone or found.span is not None or any(name in found.message for name in files):
        return found
    return attrs.evolve(found, notes=(*found.notes, f"in {listed([f'`{name}`' for name in files])}"))


def _groups(request: Request) -> list[tuple[str, list[Source]]]:
    """Return the texts of each network with their format: files that complete others have none of their own."""
    groups = list[tuple[str, list[Source]]]()
    for source in request.sources:
        format = request.format or recognized(source)
        if groups and _belongs(source, format, *groups[-1]):
            groups[-1][1].append(source)
        else:
            groups.append((format, [source]))
    return groups


def _belongs(source: Source, format: str, before: str, group: Sequence[Source]) -> bool:
    """Return whether a text belongs to the network of a group: one of both has no network of its own."""
    return completes(format, before, source) or all(completes(before, format, one) for one in group)


def _require_machines(groups: Sequence[tuple[str, Sequence[Source]]]) -> None:
    for format, group in groups:
        if format in IMPORTS and IMPORTS[format].hosts:
            message = f"`{group[0].path}` is {IMPORTS[format].noun}, needed a machine for the hosts of the fabric"
            hint = "name the fabric by `--fabric`, and before it the file of a machine"
            raise error("C0934", message, hint=hint)


def _fabric_format(joining: Joining) -> str:
    """Return the format of the fabric; raise C0934 for another network, C0970 for files that are not parts of one."""
    sources = joining.fabric
    format = recognized(sources[0])
    if not IMPORTS[format].hosts and format not in _GRAPHS:
        message = f"`{sources[0].path}` is {IMPORTS[format].noun}, needed a fabric of hosts"
        known = ", ".join(name for name, one in IMPORTS.own.items() if one.hosts)
        raise error("C0934", message, hint=f"formats of fabrics: {known}")
    for one in sources[1:]:
        if not completes(recognized(one), format, one):
            message = (
                f"`{one.path}` is {IMPORTS[recognized(one)].noun}, and no part of the fabric in `{sources[0].path}`"
            )
            raise error("C0970", message, hint="give `--fabric` twice for the subnets of one InfiniBand fabric")
    return format


#: formats that may describe a fabric as well as a machine
_GRAPHS = ("nodelink", "graphml", "dot")


def _stem(source: Source) -> str:
    from ..files.naming import stem_of

    return identifier(stem_of(source.path.strip("<>")))


class _Names:
    """Names of the declarations of one file, all different."""

    def __init__(self) -> None:
        self._taken = set[str]()

    def another(self, name: str) -> str:
        """Return a name, with a number if it is taken."""
        other, number = name, 2
        while other in self._taken:
            other, number = f"{name}_{number}", number + 1
        self._taken.add(other)
        return other


# ---- writing


def _paragraphs(
    request: Request, networks: Sequence[Named], joined: Joined | None, main: str, names: _Names
) -> Iterator[str]:  # fmt: skip
    for one in networks:
        yield "\n".join([*comments(_notes(one)), topology_text(one.network, one.name)])
    if joined:
        yield joined.text
    for kind in request.collectives:
        for on in [main] if joined else [one.name for one in networks]:
            yield f"collective {names.another(identifier(kind))} = {kind} on {on};\n"


def _notes(one: Named) -> Iterator[Note]:
    network = one.network
    links = sum(cable.count * (1 + cable.duplex) for cable in network.cables)
    parts = [
        counted(len(network.ranks), "rank"), *([counted(len(network.switches), "switch")] if network.switches else []),
        counted(links, "link"),
    ]  # fmt: skip
    yield Note(f"{', '.join(one.files)} ({network.format}): {', '.join(parts)}")
    yield from network.notes


def figures_of(
    gpu: str | None = None, gpu_link: Fraction | None = None, nic: Fraction | None = None,
    tiers: Mapping[str, Fraction] | None = None, size: int | None = None, choose: str | None = None,
    node_limit: int = coll.NODE_LIMIT,
) -> Figures:  # fmt: skip
    """Return the figures that the options of the command and of the API give; raise C0925 for an unknown GPU."""
    try:
        known = gpu_named(gpu) if gpu else None
    except CollcError as failure:
        raise CollcError(failure.diagnostics, exit_status=2) from None
    if gpu_link is not None:
        name, links = (known.name, known.links) if known else ("GPU", 0)
        known = Gpu(name, gpu_link, links, "given as --gpu-link")
    return Figures(known, nic, dict(tiers or {}), size, choose, node_limit)


def known_collective(kind: str) -> str:
    """Return the kind of a collective of ``--collective``; raise C0201 if there is none of this name, C0203 if it needs
    a root.
    """
    from collc.ir.collective import KINDS, ROOTED

    if kind not in KINDS:
        raise error("C0201", f"unknown collective `{kind}`", hint=nearest(kind, KINDS), exit_status=2)
    if kind in ROOTED:
        hint = f"declare it in the file: `collective c = {kind} on NETWORK {{ root: NODE }};`"
        raise error("C0203", f"`{kind}` needs a root, and `--collective` gives none", hint=hint, exit_status=2)
    return kind
