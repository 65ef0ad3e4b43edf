"""What this package brings to collc: names, and where what bears them is. It imports nothing of the package."""

from collc.plugins import RANKS, Candidate, Construction, Entry, Format, Parameter, Plugin, Scheduler

PLUGIN = Plugin(
    families={
        "theta": Construction(
            "collc_example.theta", (Parameter("n"),), "two ranks joined by three lines of n ranks, links both ways"
        ),
    },
    schedulers={
        "at-once": Scheduler(
            "collc_example.at_once", "AtOnce", "every rank sends its shard to all others in one step",
            ("allgather",), RANKS, candidate=Candidate(1),
        ),
    },
    passes={
        "drop-repeats": Entry(
            "collc_example.repeats", "DropRepeats", "leave out transfers of data that are there already"
        ),
    },
    targets={
        "transfers-csv": Entry(
            "collc_example.transfers", "TransfersCsv", "one line for every transfer of a schedule"
        ),
    },
    formats={
        "transfers-csv": Format(
            "collc_example.transfers", "CsvReader", "what the target transfers-csv writes",
            "transfers CSV", "a table of transfers", begins="step,action,",
        ),
    },
)  # fmt: skip
