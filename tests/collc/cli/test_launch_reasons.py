"""C0083 of ``collc launch``: one note for each reason, with the functions whose calls were left to the MPI."""

from __future__ import annotations

from collections import Counter

from collc.backends.mpi_c.interpose.report import Report
from collc.cli.relaunch import _no_calls_served


def test_reasons_are_grouped() -> None:
    size = "communicator of another size"
    calls = Counter(
        {
            ("MPI_Allreduce", "no data"): 2, ("MPI_Allreduce", size): 3, ("MPI_Bcast", "another root"): 4,
            ("MPI_Bcast", size): 30,
        }
    )  # fmt: skip
    (found,) = _no_calls_served(Report(ranks=3, sizes=(2, 3), calls=calls), [], [], False)
    assert found.code == "C0083"
    assert found.notes == (
        f"33 calls: {size} (2, 3 ranks): 30 MPI_Bcast, 3 MPI_Allreduce",
        "4 calls: another root: 4 MPI_Bcast",
        "2 calls: no data: 2 MPI_Allreduce",
    )
    assert not _no_calls_served(Report(ranks=3, calls=Counter({("MPI_Bcast", "served"): 1, **calls})), [], [], False)
