"""The tables that this package adds to collc: names, and their modules. It does not import the modules."""

from collc.plugins import RANKS, Candidate, Construction, Entry, Format, Importer, Parameter, Plugin, Scheduler

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
            "collc_example.transfers", "CsvReader", "files of the target transfers-csv",
            "transfers CSV", "a table of transfers", begins="step,action,",
        ),
    },
    imports={
        "links-csv": Importer(
            "collc_example.links", "a table of links", "an editor", noun="a table of links"
        ),
    },
)  # fmt: skip
