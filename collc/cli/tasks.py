"""What verbs are for: the headings of ``collc --help``, and the examples of every ``--help``, which tests run."""

from __future__ import annotations

__all__ = ["EXAMPLES", "TASKS"]

#: heading -> its verbs
TASKS: dict[str, tuple[str, ...]] = {
    "describe a network and its collectives": ("import", "format", "topologies"),
    "decide on a topology and a schedule": (
        "find",
        "sweep",
        "train",
        "cost",
        "simulate",
        "report",
        "explore",
        "schedulers",
        "calibrate",
    ),
    "compile for a runtime": ("compile", "convert", "replan", "targets", "passes", "formats", "cache"),
    "run what was compiled": ("run", "launch", "env"),
    "check files": ("check", "verify", "explain", "schema"),
    "work in a shell and an editor": ("completion", "lsp"),
}

#: verb -> commands; pod.coll holds one allreduce, sums.coll one for MPI, and the other files come from these commands
EXAMPLES: dict[str, tuple[str, ...]] = {
    "compile": (
        "collc pod.coll -t 'msccl-xml{runtime=rccl}' -o rccl/",
        "collc pod.coll sums.coll -t mpi-c -o out/",
        "collc pod.coll -t msccl-xml -MD -MF pod.d -o ring.xml",
    ),
    "check": ("collc check pod.coll", "collc check site/ --json"),
    "import": (
        "collc import node.xml -o node.coll",
        "collc import topo.txt --gpu h100 --nic 400Gbps -o node.coll",
        "collc import node.xml --fabric fabric.txt --hosts 'n[1-2]' -o cluster.coll",
    ),
    "format": ("collc format pod.coll", "collc format --check pod.coll sums.coll"),
    "verify": ("collc verify pod.coll", "collc verify ring.xml --runtime rccl"),
    "cost": ("collc cost pod.coll --size 1MiB,64MiB", "collc cost pod.coll --json --alpha 5us --bandwidth 200Gbps"),
    "simulate": ("collc simulate pod.coll --size 1MiB --steps", "collc simulate pod.coll --svg curves.svg"),
    "report": ("collc report pod.coll -o pod.html",),
    "explore": ("collc explore pod.coll -o passes.html", "collc explore pod.coll --ranks 0,2 -o passes.html"),
    "replan": (
        "collc replan pod.coll --without '0 <-> 1'",
        "collc replan pod.coll --slow '0 <-> 1: 1/2' -t msccl-xml -o broken.xml",
        "collc replan pod.coll --each-fault faults/ -t msccl-xml",
    ),
    "convert": ("collc convert ring.xml -t 'msccl-xml{runtime=executor}' -o executor.xml",),
    "env": ("collc env rccl/ --runtime rccl", "collc env table.csv"),
    "run": ("collc run sums.coll --compare", "collc run sums.coll --size 64KiB,1MiB --csv=times.csv"),
    "calibrate": (
        "collc calibrate times.csv -o measured.coll",
        "collc calibrate --nccl-tests ring.log tree.log -o lines.csv",
    ),
    "launch": ("collc launch sums.coll --stats -- mpiexec -n 4 ./app",),
    "find": (
        "collc find -n 64 -d 4 --size 1MiB",
        "collc find -n 36 -d 4 --bidirectional --svg frontier.svg",
        "collc find -n 64 -d 4 --exclude cayley --rack 16",
        "collc find -n 16 -d 4 --robust --expand-to 18",
    ),
    "sweep": (
        "collc sweep --on 'torus(4, 4)' 'hypercube(4)' --collective allreduce alltoall --using bfb swing auto",
        "collc sweep --on pod.coll --collective allreduce --using bfb 'forest{k=1}' --size 1KiB..1GiB:32 -o times.csv",
    ),
    "train": (
        "collc train --list",
        "collc train gpt2-xl --on 'torus(4, 4)' 'circulant(16, {3, 4})' --alpha 5us",
        "collc train gpt2-xl --on pod.coll --trace iteration.json",
    ),
    "explain": ("collc explain C0501", "collc explain"),
    "targets": ("collc targets", "collc targets msccl-xml"),
    "passes": ("collc passes", "collc passes coalesce"),
    "topologies": (
        "collc topologies",
        "collc topologies torus",
        "collc topologies 'dgx_a100(2)' --as graphml -o pod.graphml",
        "collc topologies pod.coll --as dot",
        "collc topologies 'torus(4, 4)' --as cabling -o cables.csv",
    ),
    "schedulers": ("collc schedulers", "collc schedulers forest"),
    "formats": ("collc formats", "collc formats ir"),
    "schema": ("collc schema", "collc schema cost"),
    "completion": ("collc completion bash", "collc completion zsh", "collc completion fish"),
    "lsp": ("collc lsp", "collc lsp -I site/ -D boxes=4"),
    "cache": ("collc cache", "collc cache check", "collc cache clear"),
}
