"""The forms of a collective's C function, and the parts of shipped C files that a generated file needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import attrs

__all__ = [
    "COUNTED", "ENDS", "EVEN", "FIXED", "GROUPED", "ORBITS", "RELAYED", "ROOTED", "SHARED", "WORDED", "Form",
    "counted_functions", "described_forms", "resolved",
]  # fmt: skip

#: flags of the lines ``#if FLAG`` .. ``#else /* FLAG */`` .. ``#endif /* FLAG */`` in shipped files: whether the
#: generated file has functions with counts, functions without, functions for which some ranks only relay, algorithms
#: of the first ranks and a group, such algorithms with several first ranks, such with a group that is none of vectors,
#: functions that take the root, lists of pieces that both ends of a message share, such lists of fixed places, and
#: algorithms of the ranks that a rotation keeps and of one box
COUNTED, EVEN, RELAYED, GROUPED, ORBITS, WORDED = "COUNTS", "EVEN", "RELAYS", "GROUPS", "ORBITS", "WORDS"
ROOTED, SHARED, FIXED, TURNED = "ROOTS", "SHARED", "FIXED", "TURNS"


@attrs.frozen
class Form:
    """One C function of a collective with counts.

    ``suffix`` is that of its name, ``large`` whether it takes large counts, ``more`` its last parameters, ``end`` the
    shipped file with its last statements.
    """

    suffix: str
    large: bool
    more: str
    end: str

    @property
    def words(self) -> dict[str, str]:
        """The words of the shipped files that differ between forms."""
        count, place, counts, places = (
            ("MPI_Count", "MPI_Aint", "wide", "far") if self.large else ("int", "int", "narrow", "narrow")
        )
        return {
            "FORM": self.suffix, "COUNT": count, "PLACE": place, "COUNTED": counts, "PLACED": places, "MORE": self.more,
        }  # fmt: skip


_BEGIN, _INIT = ", PREFIX_request *request", ", MPI_Info info,\n    PREFIX_request *request"
_FORMS = (
    Form("", False, "", "counts_call.c"), Form("_c", True, "", "counts_call.c"),
    Form("_begin", False, _BEGIN, "counts_begin.c"), Form("_begin_c", True, _BEGIN, "counts_begin.c"),
    Form("_init", False, _INIT, "counts_init.c"), Form("_init_c", True, _INIT, "counts_init.c"),
)  # fmt: skip

#: the shipped files that end functions with counts
ENDS = tuple(dict.fromkeys(form.end for form in _FORMS))

_LARGE = "the same for counts of any size"
_BLOCKING, _NONBLOCKING = "blocking", "nonblocking: returns at once, see test and wait"
_PERSISTENT = "persistent: start begins the call, as often as wanted"


def described_forms(counted: bool) -> list[tuple[str, str]]:
    """Return the suffix and the description of each form of a collective."""
    large = [("", _BLOCKING), ("_c", _LARGE)]
    if not counted:
        return [*large, ("_begin", _NONBLOCKING), ("_init", _PERSISTENT)]
    return [*large, ("_begin", _NONBLOCKING), ("_begin_c", _LARGE), ("_init", _PERSISTENT), ("_init_c", _LARGE)]


def resolved(text: str, flags: Iterable[str]) -> str:
    """Return a shipped text with the lines for a file with these flags.

    >>> resolved("a\\n#if EVEN\\nb\\n#else /* EVEN */\\nc\\n#endif /* EVEN */\\n", [])
    'a\\nc\\n'
    """
    return _resolved(text, frozenset(flags))


@lru_cache(256)
def _resolved(text: str, chosen: frozenset[str]) -> str:
    """Every file of C is written and read from the same shipped texts."""
    for flag in (COUNTED, EVEN, RELAYED, GROUPED, ORBITS, WORDED, ROOTED, SHARED, FIXED, TURNED):
        pattern = rf"^#if {flag}\n(.*?)(?:^#else /\* {flag} \*/\n(.*?))?^#endif /\* {flag} \*/\n"
        kept = r"\1" if flag in chosen else r"\2"
        text = re.sub(pattern, kept, text, flags=re.DOTALL | re.MULTILINE)
    return text


def counted_functions(begin: str, ends: dict[str, str]) -> str:
    """Return all forms of a function with counts.

    ``begin`` is the shipped text of its beginning, ``ends`` has the texts of ``ENDS``.
    """
    return "\n".join(_function(form, begin + ends[form.end]) for form in _FORMS)


def _function(form: Form, text: str) -> str:
    words = form.words
    return re.sub("FORM|COUNTED|PLACED|COUNT|PLACE|MORE", lambda found: words[found[0]], text)
