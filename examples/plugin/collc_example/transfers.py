"""A target and the reader of its files. A line has the step, the part of a shard, the sender and the receiver."""

from collections.abc import Sequence
from typing import ClassVar

import attrs

from collc.backends.base import Artifact, Target
from collc.ir.collective import Collective
from collc.ir.diagnostic import CollcError, error
from collc.ir.schedule import Schedule
from collc.ir.topology import Topology
from collc.ir.verify import Check, Report, verify
from collc.reading.base import Reader

_HEAD = "step,action,shard,lo,hi,parts,from,to,collective,ranks,root"


def _lines(schedule: Schedule) -> list[list[object]]:
    """Return the lines of the file; raise EX02 if data pass through switches or other ranks."""
    if not schedule.routes.is_direct or not schedule.topology.is_direct:
        raise error("EX02", "transfers-csv writes transfers over single links", exit_status=3)
    s, collective = schedule, schedule.collective
    same = [s.parts], [collective.kind, collective.num_ranks, "" if collective.root is None else collective.root]
    columns = (s.step, s.action, s.shard, s.lo, s.hi, s.src, s.dst)
    return [[*row[:5], *same[0], *row[5:], *same[1]] for row in zip(*(c.tolist() for c in columns), strict=True)]


@attrs.frozen
class TransfersCsv(Target):
    """Writes a table of the schedule's transfers."""

    name: ClassVar[str] = "transfers-csv"
    summary: ClassVar[str] = "one line for every transfer of a schedule"
    suffix: ClassVar[str] = ".csv"
    level: ClassVar[str] = "schedule"

    def emit(self, ir: Schedule) -> Sequence[Artifact]:
        """Return the one file."""
        text = "\n".join([_HEAD, *(",".join(map(str, line)) for line in _lines(ir))])
        return [Artifact(f"{ir.collective.kind}.csv", text + "\n", self.name)]

    def check(self, ir: Schedule, artifacts: Sequence[Artifact]) -> Report:
        """Read the file back, compare it with the schedule, and execute it."""
        collective = ir.collective
        try:
            found = CsvReader().read(artifacts[0].text, artifacts[0].filename)
        except CollcError as problem:
            checks: tuple[Check, ...] = (Check("reading", False, problem.diagnostics[0].message),)
        else:
            same = _lines(found) == _lines(ir)
            checks = (Check("same transfers", same, "line by line"), *verify(found).checks)
        return Report("schedule", collective.kind, collective.num_ranks, checks)


class CsvReader(Reader):
    """Reads the table; the network has the links that are used, and no others."""

    name: ClassVar[str] = "transfers-csv"

    def read(self, text: str, path: str) -> Schedule:
        """Return the schedule; raise EX03 for a text that is no such table."""
        try:
            head, *lines = text.split()
            rows = [line.split(",") for line in lines]
            numbers = [[int(word) for word in row[:8]] for row in rows]
            _, _, _, _, _, _, _, _, kind, ranks, root = rows[0]
            collective = Collective(kind, int(ranks), root=int(root) if root else None)
        except (ValueError, IndexError, CollcError):
            raise error("EX03", f"`{path}` is no table of transfers") from None
        pairs = sorted({(row[6], row[7]) for row in numbers})
        if head != _HEAD or any(not 0 <= rank < collective.num_ranks for pair in pairs for rank in pair):
            raise error("EX03", f"`{path}` is no table of transfers")
        network = Topology.from_links("used", collective.num_ranks, pairs)
        step, action, shard, lo, hi, parts, *_ = map(list, zip(*numbers, strict=True))
        route = [pairs.index((row[6], row[7])) for row in numbers]
        return Schedule(network, collective, parts[0], step, action, shard, lo, hi, route, discrete=True)
