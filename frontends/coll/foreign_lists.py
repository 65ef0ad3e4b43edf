"""Lists, comprehensions and members as other languages write them."""

from __future__ import annotations

import re

from .trouble import DECLARATIONS, STATEMENTS, Fix, Slip, Trouble, before, bracketed, closing_offset, here

__all__ = ["ROWS"]


def _list_in_brackets(t: Trouble) -> Fix | None:
    """``{ weights: [5, 0, 1] }``, ``among [0, 4]``."""
    if t.found != "[" or t.last is None or t.last.type not in ("COLON", "AMONG"):
        return None
    end = closing_offset(t.text, t.position)
    inner = bracketed(t.text, t.position).replace("[", "{").replace("]", "}")
    hint = f"lists stand in braces: `{{{inner}}}`" if len(inner) < 60 else "lists stand in braces: `{0, 4, 8}`"
    return Fix("C0109", "found a list in `[ ]`, needed `{ }`", t.position, end, hint=hint)


_AMONG_WORDS = ("over", "between", "within", "across", "with", "in", "of", "by", "for", "ranks", "members", "group")


def _other_among(t: Trouble) -> Fix | None:
    """``collective g = allreduce on pod over {0, 4};``."""
    if "AMONG" not in t.expected or t.found not in _AMONG_WORDS or t.on_new_line:
        return None
    if not re.compile(r"\w+\s*\{").match(t.text, t.position) or re.compile(r"\w+\s*\{\s*[a-z]+\s*:").match(
        t.text, t.position
    ):
        return None
    message = f"found `{t.found}`, needed `among`"
    return here(t, "C0111", message, insert="AMONG", sign="among", skip=len(t.found))


def _early_among(t: Trouble) -> Fix | None:
    """``collective g = allreduce among {0, 4} on pod;``."""
    match = re.compile(r"among\s+(\{[^{}]*\}|\w+)\s+on\s+([\w(), ]+)").match(t.text, t.position)
    if match is None or "ON" not in t.expected:
        return None
    hint = f"members stand after the topology: `on {match[2].strip()} among {match[1]}`"
    return here(t, "C0111", "found `among`, needed `on`", hint=hint, skip=match.end(1) - t.position)


def _bare_members(t: Trouble) -> Fix | None:
    """``among 0, 4;``."""
    match = re.search(r"\bamong\s+([^;{}]*)\Z", before(t))
    if t.found != "," or match is None or "SEMI" not in t.expected:
        return None
    rest = re.compile(r"[^;{}\n]*").match(t.text, t.position)
    members = f"{match[1].rstrip()}{rest.group().rstrip() if rest else ''}"
    hint = f"write `among {{{members}}}`"
    return here(t, "C0112", "found `,`, needed braces around the members", hint=hint)


_CLAUSES = {"where": "IF", "when": "IF", "with": "IF", "|": "FOR", ":": "FOR", "foreach": "FOR", "forall": "FOR"}


def _other_clause(t: Trouble) -> Fix | None:
    """``{r | r in 0..4}``, ``{r for r in 0..4 where r != 2}``."""
    if t.last is not None and t.last.type == "UNIT" and t.last.text in ("where", "when"):  # after a number
        message, hint = f"found `{t.last.text}`, needed `if`", "a set is `{ITEM for NAME in LOW..HIGH if CONDITION}`"
        return Fix("C0109", message, t.last.start, t.last.end, hint=hint)
    terminal = _CLAUSES.get(t.found)
    if terminal is None or terminal not in t.expected or t.opener is None or t.opener.type != "LBRACE":
        return None
    if "RBRACE" not in t.expected or t.text[: t.opener.start].rstrip().endswith(("steps", ")")):
        return None
    word = terminal.lower()
    hint = "a set is `{ITEM for NAME in LOW..HIGH if CONDITION}`"
    message = f"found `{t.found}`, needed `{word}`"
    return here(t, "C0109", message, hint=hint, insert=terminal, sign=word, skip=len(t.found))


def _not_together(t: Trouble) -> Fix | None:
    """``together { .. schedule a using ring; }``; at the beginning of a line, a `}` was forgotten."""
    if t.found not in (*DECLARATIONS, *STATEMENTS) or not {"COLLECTIVE", "LET", "FOR"} <= t.expected:
        return None
    if "TOPOLOGY" in t.expected or t.text[: t.position].endswith("\n"):
        return None
    where = "after" if t.found in ("schedule", "emit") else "before"
    message = f"found `{t.found}` in `together`"
    hint = f"put it {where} the block, which has `collective`, `let`, `for` and `if`"
    return here(t, "C0140", message, hint=hint, drop_from=t.position + len(t.found))


ROWS = (
    Slip("together { collective a = allreduce on pod; schedule a using ring; }", _not_together),
    Slip("collective g = allgatherv on pod { weights: [5, 0, 1] };", _list_in_brackets),
    Slip("collective g = allreduce on pod over {0, 4};", _other_among),
    Slip("collective g = allreduce among {0, 4} on pod;", _early_among),
    Slip("collective g = allreduce on pod among 0, 4;", _bare_members),
    Slip("collective g = allreduce on pod among {r for r in 0..4 where r != 2};", _other_clause),
    Slip("collective g = allreduce on pod among {r | r in 0..4};", _other_clause),
)
