"""The table of schedulers: what each does, its input, and how ``auto`` tries it.

Every other list of schedulers follows from this table: the synthesis passes, the language's check, the candidates of
``auto``, listings, documentation, and hints for mistyped names.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from collc.ir.registry import Registry

__all__ = [
    "ANY",
    "BOXES",
    "RANKS",
    "RINGS",
    "SCHEDULERS",
    "Baseline",
    "Candidate",
    "Scheduler",
    "baselines",
    "candidates",
    "usual",
]

_HALVES = ("allgather", "reduce-scatter", "allreduce")
_TREES = ("allreduce", "broadcast", "reduce")
_SPREADS = (*_HALVES, "broadcast", "reduce")
_ROOTED = (*_SPREADS, "gather", "scatter")
_ALL = (*_ROOTED, "alltoall")
_POINTED = ("alltoall", "gather", "scatter")  # every shard has one source and one target
_HALVES_V = ("allgatherv", "reduce-scatterv")  # shards that differ in size
_POINTED_V = ("alltoallv", "gatherv", "scatterv")
_ALL_V = (*_HALVES_V, *_POINTED_V)
_COPYING = ("custom", "allgather", "broadcast", *_POINTED, "allgatherv", *_POINTED_V)

#: the networks that schedulers take, as listings state them
RANKS = "strongly connected, ranks only"
ANY = "strongly connected, with or without switches"
RINGS = "networks with a known ring through all ranks"
BOXES = "clusters of boxes, with or without switches"

Options = tuple[tuple[str, str], ...]

_SIZES: tuple[Options, ...] = ((("variant", "bandwidth"),), (("variant", "latency"),))
_AT_ONCE: tuple[Options, ...] = ((("objective", "latency"),),)
_MIRRORED: tuple[Options, ...] = ((), (("mirrored", "neg"),), (("mirrored", "reflect"),))


class Baseline(NamedTuple):
    """A scheduler with options as a baseline: what NCCL, or a framework above it, does on a network.

    ``on``: on clusters of ``boxes``, on networks without boxes, where every rank is a machine (``ranks``), or on
    ``all``. ``collectives``: it is one for these (None: all that the scheduler takes). ``native``: NCCL's own name of
    the algorithm, if NCCL has it.
    """

    name: str
    on: Literal["boxes", "ranks", "all"]
    options: Options = ()
    collectives: tuple[str, ...] | None = None
    native: str | None = None


class Candidate(NamedTuple):
    """How ``auto`` tries a scheduler: in the order of ``turn``, which also decides between equally fast ones.

    * ``collectives``: the collectives for which it is tried (None: all that it takes).
    * ``built``: it is tried only on topologies that an operator built. ``most``: only up to this number of ranks.
    * ``variants``: it is tried with each of these options, for the collectives ``varied`` (None: all), and for these
      up to ``most_varied`` ranks (None: ``most``).
    * ``baselines``: those on boxes are tried there with their options, after all other candidates.
    * ``planned``: what depends on the size. ``once``: no property of the schedule. ``size``: the option ``size``, if
      links differ in latency. ``pipeline`` and ``trees``: the number of pieces of its pipeline or trees.
    * ``last``: the collectives for which it is tried if no other candidate has a schedule.
    * ``straight``: shards go straight from their sources to all targets, in one step. ``around``: data visit one rank
      after the other. It is not tried if these steps and loads alone take longer than another candidate. On up to
      ``most_sure`` ranks it is tried with ``variants`` if they take less than half as long as all others.
    * ``fewest``, ``slower``: if a scheduler of ``fewest`` steps meets the bandwidth bound, no ``slower`` one is tried.

    >>> Candidate(7, collectives=("allreduce",), most=64).planned
    'once'
    """

    turn: int
    collectives: tuple[str, ...] | None = None
    built: bool = False
    most: int | None = None
    variants: tuple[Options, ...] = ((),)
    varied: tuple[str, ...] | None = None
    most_varied: int | None = None
    baselines: tuple[Baseline, ...] = ()
    planned: Literal["once", "size", "pipeline", "trees"] = "once"
    fewest: bool = False
    slower: bool = False
    straight: bool = False
    around: bool = False
    most_sure: int | None = None
    last: tuple[str, ...] = ()

    def most_for(self, collective: str) -> int | None:
        """Return the number of ranks up to which it is tried for a collective; None for any."""
        varied = self.varied is not None and collective in self.varied
        return self.most_varied if varied and self.most_varied is not None else self.most

    @property
    def boxes(self) -> tuple[Options, ...]:
        """The options with which it is tried on clusters of boxes."""
        return tuple(one.options for one in self.baselines if one.on == "boxes")


class Scheduler(NamedTuple):
    """A scheduler: its pass, a summary, the collectives and networks that it takes, and how ``auto`` tries it.

    ``usual`` are the collectives for which ``auto`` always tries it, on a network that it takes.

    >>> mine = Scheduler("my_package.at_once", "AtOnce", "one step", ("allgather",), RANKS, candidate=Candidate(1))
    >>> mine.collectives, mine.usual
    (('allgather',), ())
    """

    module: str
    attribute: str
    summary: str
    collectives: tuple[str, ...]
    networks: str
    usual: tuple[str, ...] = ()
    candidate: Candidate | None = None


_RING = (
    Baseline("NCCL ring", "boxes", (("rings", "nics"),), native="ring"), Baseline("NCCL ring", "ranks", native="ring"),
)  # fmt: skip
_TWO_TREES = (
    Baseline("NCCL tree", "ranks", collectives=("allreduce",), native="tree"),
    Baseline("two trees", "all", collectives=("broadcast", "reduce")),
)
_BOX_TREES = (Baseline("NCCL tree", "boxes", native="tree"),)
_TWO_LEVEL = (
    Baseline("two-level ring", "boxes", (("across", "ring"),)),
    Baseline("two-level PAT", "boxes", (("across", "pat"),)),
)
_TORUS = "collc.passes.synthesis.torus"

#: scheduler (the language's ``using NAME``) -> what it is
SCHEDULERS: Registry[Scheduler] = Registry("scheduler", ("schedulers",), {
    "auto": Scheduler(
        "collc.selection", "Auto",
        "the fastest schedule of all schedulers, at a size or for every size of a range, by the simulator",
        (*_ALL, *_ALL_V, "custom"), ANY,
    ),
    "bfb": Scheduler(
        "collc.passes.synthesis.breadth_first.bfb", "BFB",
        "breadth-first broadcast with exactly balanced links, for any strongly connected network of ranks",
        (*_SPREADS, *_HALVES_V), RANKS, (*_SPREADS, *_HALVES_V), Candidate(1, planned="size", fewest=True),
    ),
    "double-binary-tree": Scheduler(
        "collc.passes.synthesis.trees.double_binary_tree", "DoubleBinaryTree",
        "pipelined allreduce, broadcast or reduce over two binary trees, as in NCCL",
        _TREES, ANY, (), Candidate(7, planned="pipeline", baselines=_TWO_TREES),
    ),
    "expansion": Scheduler(
        "collc.passes.expansion.expansion", "Expansion",
        "the base topology's schedule, expanded by the operators that built the topology",
        _HALVES, RANKS, (), Candidate(2, built=True, most=512, slower=True),
    ),
    "exact": Scheduler(
        "collc.passes.synthesis.exact.scheduler", "Exact",
        "fewest steps or least bandwidth time of small networks, proved by integer programming",
        (*_ALL, "custom"), RANKS, ("gather", "scatter"), Candidate(4, ("gather", "scatter"), most=24),
    ),
    "flow": Scheduler(
        "collc.passes.synthesis.flow.scheduler", "Flow",
        "all-to-all, gather or scatter from a multi-commodity flow, for any strongly connected network",
        (*_POINTED, *_POINTED_V), ANY, (*_POINTED, *_POINTED_V), Candidate(3, (*_POINTED, *_POINTED_V)),
    ),
    "forest": Scheduler(
        "collc.passes.synthesis.forest.scheduler", "ForestScheduler",
        "spanning trees of optimal bandwidth, for any network, switches included (ForestColl)",
        (*_SPREADS, *_HALVES_V), ANY, (*_SPREADS, *_HALVES_V), Candidate(8, most=256, planned="trees", slower=True),
    ),
    "general": Scheduler(
        "collc.passes.synthesis.general.scheduler", "General",
        "any collective that copies, by its pre- and postcondition, with a bound by prices of links",
        _COPYING, ANY, ("custom",),
        Candidate(
            10, ("custom", "allgather", "broadcast", "alltoall"), most=32, most_varied=64, variants=_AT_ONCE,
            varied=("allgather", "broadcast"), straight=True, most_sure=128,
            last=(*_POINTED, *_POINTED_V),
        ),
    ),
    "swing": Scheduler(
        f"{_TORUS}.swing", "Swing",
        "allreduce, reduce-scatter, allgather on a torus of any shape; peers alternate sides",
        (*_SPREADS, *_HALVES_V), ANY, (), Candidate(5, variants=_SIZES, varied=("allreduce",)),
    ),
    "recursive-doubling": Scheduler(
        f"{_TORUS}.doubling", "RecursiveDoubling",
        "allreduce that exchanges whole vectors in log2(N) steps with peers 1, 2, 4, .. away",
        _TREES, ANY, (), Candidate(6, variants=_MIRRORED),
    ),
    "rabenseifner": Scheduler(
        f"{_TORUS}.doubling", "Rabenseifner", "allreduce, reduce-scatter, allgather by recursive halving and doubling",
        (*_HALVES, *_HALVES_V), ANY, (), Candidate(6, variants=_MIRRORED),
    ),
    "bucket": Scheduler(
        f"{_TORUS}.bucket", "Bucket",
        "allreduce, reduce-scatter, allgather by rings along one torus dimension after another",
        (*_HALVES, *_HALVES_V), ANY, (), Candidate(5),
    ),
    "ring": Scheduler(
        f"{_TORUS}.ring", "Ring", "allreduce, reduce-scatter, allgather over rings: in both directions, or by each NIC",
        (*_HALVES, *_HALVES_V), RINGS, (), Candidate(5, baselines=_RING),
    ),
    "bine": Scheduler(
        f"{_TORUS}.bine", "Bine", "negabinary trees and butterflies on any network, all collectives but alltoall",
        (*_ROOTED, *_HALVES_V, "gatherv", "scatterv"), ANY, (), Candidate(6, variants=_SIZES, varied=("allreduce",)),
    ),
    "pat": Scheduler(
        f"{_TORUS}.pat", "PAT",
        "allgather and reduce-scatter in log2(N) steps or within a buffer, any number of ranks",
        (*_HALVES, *_HALVES_V), ANY, (), Candidate(6, baselines=(Baseline("PAT", "all", native="pat"),)),
    ),
    "trivance": Scheduler(
        f"{_TORUS}.trivance", "Trivance",
        "allreduce, reduce-scatter, allgather in log3(N) steps with both ranks 3^k away",
        (*_HALVES, *_HALVES_V), ANY, (), Candidate(6, variants=_SIZES, varied=("allreduce",)),
    ),
    "box-trees": Scheduler(
        "collc.passes.synthesis.trees.box_trees", "BoxTrees",
        "pipelined allreduce by chains in boxes and two binary trees across them, as in NCCL",
        ("allreduce",), BOXES, (), Candidate(9, variants=(), baselines=_BOX_TREES, planned="trees"),
    ),
    "nccl-rings": Scheduler(
        "collc.passes.synthesis.nccl.scheduler", "NcclRings",
        "the rings of most bandwidth that stock NCCL can execute, box by box and NIC by NIC", _SPREADS, RINGS,
        (), Candidate(9, most=64, planned="trees", slower=True, around=True),
    ),
    "two-level": Scheduler(
        f"{_TORUS}.two_level", "TwoLevel",
        "allreduce, reduce-scatter, allgather inside boxes, and across them rail by rail",
        (*_HALVES, *_HALVES_V), BOXES, (), Candidate(9, variants=(), baselines=_TWO_LEVEL, planned="pipeline"),
    ),
    "two-tier": Scheduler(
        "collc.passes.synthesis.two_tier.scheduler", "TwoTier",
        "all-to-all across boxes in balanced one-to-one rounds, even or uneven",
        ("alltoall", "alltoallv"), BOXES, (), Candidate(9, ("alltoall", "alltoallv")),
    ),
    "steps": Scheduler(
        "collc.passes.synthesis.steps", "Steps", "the schedule written by hand in the specification",
        (*_ALL, *_ALL_V), ANY,
    ),
}, of=Scheduler)  # fmt: skip


def candidates() -> tuple[str, ...]:
    """Return the schedulers that ``auto`` compares, in order; only collc's own, so that no plugin changes its choice.

    >>> candidates()[:3]
    ('bfb', 'expansion', 'flow')
    """
    tried = [(one.candidate.turn, name) for name, one in SCHEDULERS.own.items() if one.candidate is not None]
    return tuple(name for _, name in sorted(tried, key=lambda pair: pair[0]))


def baselines(name: str, boxed: bool) -> tuple[tuple[str, Baseline], ...]:
    """Return the baselines of a collective, by its name, on a cluster of boxes or not, each after its scheduler.

    NCCL's own algorithms are none for collectives that NCCL does not have, such as allgatherv.

    >>> [one.name for _, one in baselines("allreduce", boxed=True)]
    ['NCCL ring', 'PAT', 'NCCL tree', 'two-level ring', 'two-level PAT']
    """
    found = []
    for scheduler in candidates():
        one = SCHEDULERS.own[scheduler]
        assert one.candidate is not None
        found += [
            (scheduler, baseline)
            for baseline in one.candidate.baselines
            if baseline.on in ("all", "boxes" if boxed else "ranks")
            and name in (baseline.collectives or one.collectives)
            and (baseline.native is None or name in _ALL)
        ]
    return tuple(found)


def usual(collective: str, switches: bool = False) -> str:
    """Return the scheduler that ``auto`` always tries for a collective, by its name; ``general`` if none takes it.

    >>> usual("allreduce"), usual("allreduce", switches=True), usual("alltoall")
    ('bfb', 'forest', 'flow')
    """
    all_ = [name for name, one in SCHEDULERS.own.items() if collective in one.usual]
    fitting = [name for name in all_ if not switches or SCHEDULERS.own[name].networks != RANKS]
    return [*fitting, *all_, "general"][0]
