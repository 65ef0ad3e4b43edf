"""IR -> IR: synthesis, transforms, lowering, optimization.

Enters: verified IR of the level a pass ``takes``. Leaves: IR of the level it ``gives``, verified by the driver.
A pass knows only :mod:`collc.ir`; it may assume the facts it ``requires`` and nothing else.
Listing the passes imports none of them.
"""

from __future__ import annotations

__all__ = ["AUTO", "PASSES", "SCHEDULERS"]

#: name -> (module, class, one-line summary); the class is imported when the pass is first used
PASSES: dict[str, tuple[str, str, str]] = {
    "bfb": (
        "collc.passes.synthesis.bfb", "BFB",
        "breadth-first broadcast with exactly balanced links, for any strongly connected network of ranks",
    ),
    "double-binary-tree": (
        "collc.passes.synthesis.double_binary_tree", "DoubleBinaryTree",
        "pipelined allreduce, broadcast or reduce over two binary trees, as NCCL's",
    ),
    "expansion": (
        "collc.passes.expansion.expansion", "Expansion",
        "the schedule of the base topology, carried along the operators that expand it",
    ),
    "exact": (
        "collc.passes.synthesis.exact.scheduler", "Exact",
        "fewest steps or least bandwidth time of small networks, proved by integer programming",
    ),
    "flow": (
        "collc.passes.synthesis.flow.scheduler", "Flow",
        "all-to-all from a multi-commodity flow, for any strongly connected network of ranks",
    ),
    "forest": (
        "collc.passes.synthesis.forest.scheduler", "ForestScheduler",
        "spanning trees of optimal bandwidth, for any network, switches included (ForestColl)",
    ),
    "swing": (
        "collc.passes.synthesis.torus.swing", "Swing",
        "allreduce and its halves on a torus of any shape, over peers that alternate sides",
    ),
    "recursive-doubling": (
        "collc.passes.synthesis.torus.doubling", "RecursiveDoubling",
        "allreduce that exchanges everything in log2(N) steps, peers 1, 2, 4, .. away",
    ),
    "rabenseifner": (
        "collc.passes.synthesis.torus.doubling", "Rabenseifner",
        "allreduce by recursive halving and doubling, and its halves",
    ),
    "bucket": (
        "collc.passes.synthesis.torus.bucket", "Bucket",
        "allreduce and its halves by rings along one dimension of a torus after the other",
    ),
    "ring": (
        "collc.passes.synthesis.torus.ring", "Ring",
        "allreduce and its halves over rings: one, two of a 2-D torus, both ways round",
    ),
    "bine": (
        "collc.passes.synthesis.torus.bine", "Bine",
        "negabinary trees and butterflies on any network, all collectives but alltoall",
    ),
    "pat": (
        "collc.passes.synthesis.torus.pat", "PAT",
        "allgather and reduce-scatter in log2(N) steps or within a buffer, any number of ranks",
    ),
    "trivance": (
        "collc.passes.synthesis.torus.trivance", "Trivance",
        "allreduce and its halves in log3(N) steps, exchanges with both ranks 3^k away",
    ),
    "steps": ("collc.passes.synthesis.steps", "Steps", "the schedule written by hand in the specification"),
    "stream": ("collc.passes.stream", "Stream", "send what trees carry in pieces that follow each other"),
    "reverse": ("collc.passes.reverse", "Reverse", "run a schedule backwards: allgather <-> reduce-scatter"),
    "transpose": (
        "collc.passes.expansion.isomorphic", "Transpose",
        "turn an allgather round on a network that is isomorphic to its transpose",
    ),
    "compose": ("collc.passes.compose", "Compose", "an allgather preceded by its reverse: an allreduce"),
    "discretize": ("collc.passes.discretize", "Discretize", "cut every shard into equal chunks"),
    "renumber": (
        "collc.passes.renumber", "Renumber",
        "let chunks that go together lie together, where numbers mean nothing",
    ),
    "lower": ("collc.passes.lower", "Lower", "from who sends what when to what each rank executes"),
    "coalesce": ("collc.passes.coalesce", "Coalesce", "send contiguous chunks in one message"),
    "balance-threadblocks": (
        "collc.passes.threadblocks", "BalanceThreadblocks",
        "share messages out to threadblocks and channels, evenly by bytes, within a runtime's limits",
    ),
    "eliminate-copies": (
        "collc.passes.copies", "EliminateCopies",
        "leave out copies by reading and writing where data come from and go to",
    ),
    "replicate": (
        "collc.passes.replicate", "Replicate",
        "run copies of the program side by side on parts of the data, on channels of their own",
    ),
    "assign-channels": (
        "collc.passes.channels", "AssignChannels",
        "give connections few channels, on which what flows through a rank stays",
    ),
    "reorder-fifo": (
        "collc.passes.reorder", "ReorderFifo",
        "send first what others wait for longest, and receive in the order sent",
    ),
    "prune-dependencies": ("collc.passes.prune", "PruneDependencies", "leave out waits that other waits imply"),
    "reuse-scratch": (
        "collc.passes.scratch", "ReuseScratch", "let data that are never there at the same time share scratch",
    ),
    "fuse": ("collc.passes.fuse", "Fuse", "receive and send on in one instruction and one threadblock"),
    "unfuse": ("collc.passes.unfuse", "Unfuse", "replace fused instructions by receives, copies and reductions"),
}  # fmt: skip

#: scheduler (the language's ``using NAME``) -> (pass that synthesizes it, one-line summary)
SCHEDULERS: dict[str, tuple[str, str]] = {
    "auto": ("bfb", "the fastest of all that apply, at a size or for every size of a range, by the simulator"),
    "bfb": ("bfb", PASSES["bfb"][2]),
    "double-binary-tree": ("double-binary-tree", PASSES["double-binary-tree"][2]),
    "expansion": ("expansion", PASSES["expansion"][2]),
    "exact": ("exact", PASSES["exact"][2]),
    "flow": ("flow", PASSES["flow"][2]),
    "forest": ("forest", PASSES["forest"][2]),
    "swing": ("swing", PASSES["swing"][2]),
    "recursive-doubling": ("recursive-doubling", PASSES["recursive-doubling"][2]),
    "rabenseifner": ("rabenseifner", PASSES["rabenseifner"][2]),
    "bucket": ("bucket", PASSES["bucket"][2]),
    "ring": ("ring", PASSES["ring"][2]),
    "bine": ("bine", PASSES["bine"][2]),
    "pat": ("pat", PASSES["pat"][2]),
    "trivance": ("trivance", PASSES["trivance"][2]),
    "steps": ("steps", PASSES["steps"][2]),
}

#: kind of collective -> what schedules it on any network of ranks, where that is not SCHEDULERS["auto"]
AUTO: dict[str, str] = {"alltoall": "flow", "gather": "exact", "scatter": "exact"}
