"""Hints for options that a verb does not have: a word of another tool, of another verb or of the language."""

from __future__ import annotations

from collections.abc import Collection
from difflib import SequenceMatcher

__all__ = ["option_hint"]

_IN_THE_FILE = "the file chooses the scheduler: `schedule NAME using ring;`"
_RANKS = "the topology of the file has the number of ranks; `-D NAME=VALUE` replaces a `param`"

#: words -> the options that they may mean; the first that the verb has is the hint
_WORDS = {
    "reduction": ("gamma",), "reducetime": ("gamma",), "overhead": ("launch",), "startup": ("launch",),
    "latency": ("alpha",), "lat": ("alpha",), "bw": ("bandwidth",), "beta": ("bandwidth",), "bytes": ("size",),
    "compare": ("baselines",), "nccl": ("baselines",), "excel": ("csv",), "xlsx": ("csv",), "tsv": ("csv",),
    "md": ("markdown",), "table": ("markdown",), "target": ("t",), "emit": ("t",), "define": ("D",),
    "param": ("D",), "include": ("I",), "passes": ("p",), "pipeline": ("p",), "output": ("o",), "out": ("o",),
    "silent": ("quiet",), "debug": ("verbose",),
}  # fmt: skip
#: words -> what to do instead, where no option of the verb is meant
_INSTEAD = {
    **dict.fromkeys(("s", "scheduler", "using", "algorithm", "algo"), _IN_THE_FILE),
    **dict.fromkeys(("n", "np", "ranks", "nranks"), _RANKS),
    **dict.fromkeys(("t", "target", "emit"), "`emit NAME as TARGET;` in the file names a target"),
}
_LEAST_ALIKE = 0.7


def option_hint(name: str, options: Collection[str]) -> str | None:
    """Return what to write for an option that a verb does not have; None if nothing is meant for certain.

    >>> option_hint("--baseline", ["--baselines"]), option_hint("--reduction", ["--gamma"])
    ('did you mean `--baselines`?', 'write `--gamma`')
    >>> option_hint("--reduction", ["--version"]) is None
    True
    """
    word = name.lstrip("-").lower().replace("-", "").replace("_", "")
    dashed = {option.lstrip("-"): option for option in options}
    for meant in _WORDS.get(word, ()):
        if meant in dashed:
            return f"write `{dashed[meant]}`"
    return _nearest(name, options) or _INSTEAD.get(word)


def _nearest(name: str, options: Collection[str]) -> str | None:
    """Return the option most like ``name``: dashes, which all have, say nothing."""
    word = name.lstrip("-")
    likeness = {option: SequenceMatcher(None, word, option.lstrip("-")).ratio() for option in sorted(options)}
    best = max(likeness, key=lambda option: likeness[option], default=None)
    return f"did you mean `{best}`?" if best and likeness[best] >= _LEAST_ALIKE else None
