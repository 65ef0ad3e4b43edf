"""The paragraphs that ``collc explain`` prints for the codes of this backend."""

from __future__ import annotations

__all__ = ["CODES"]

CODES: dict[str, str] = {
    "C0830": """\
Chakra traces are messages of Protocol Buffers, and their library is not installed

The target `chakra` writes them with the package `protobuf`, which the extra `chakra` of collc installs.

    pip install 'collc[chakra]'
""",
    "C0831": """\
the target `chakra` cannot write this collective

In a trace every rank takes part, because ASTRA-sim gives every NPU of its network a file. Write the network of the
members alone.

    collective tp = allreduce on pod among {0, 1, 2, 3};       # C0831
    collective tp = allreduce on without(pod, {4, 5, 6, 7});
""",
    "C0832": """\
an option of the target `chakra` is out of range

`size` is the size of the whole vector in bytes: 1 to 2^62. Without it the trace has the size of the collective, or
1 MiB if it has none.

    collc pod.coll -t 'chakra{size=67108864}' -o traces/
""",
}
