"""Messages for syntax errors: a table of common mistakes, each with an example, a test and a remedy.

The first row that recognizes the mistake answers. Otherwise the message names what was found and what was needed.
"""

from __future__ import annotations

import re

from collc.ir.diagnostic import nearest
from collc.ir.shown import listed

from . import foreign_forms, foreign_lists, foreign_signs, foreign_words
from .families import FAMILIES, OPERATORS
from .foreign_words import assigned, foreign_word, whole_form
from .trouble import DECLARATIONS, KEYWORDS, STATEMENTS, Fix, Sign, Slip, Trouble, before, here

__all__ = ["KEYWORDS", "SLIPS", "Fix", "Sign", "Slip", "Trouble", "describe"]


def describe(trouble: Trouble) -> Fix:
    """Return what to say about a syntax error."""
    for slip in SLIPS:
        if (fix := slip.recognize(trouble)) is not None:
            return fix
    needed = _needed(trouble.expected)
    end = trouble.position + len(trouble.found)
    return Fix("C0101", f"found {trouble.what()}, needed {needed}", trouble.position, end)


# ---- the slips


def _unterminated_string(t: Trouble) -> Fix | None:
    if t.found not in ('"', "'"):
        return None
    line = t.text[t.position :].split("\n", 1)[0].rstrip()
    code, message = "C0110", "found a string that does not end on its line"
    return Fix(code, message, t.position, t.position + len(line), hint=f"close it with `{t.found}`")


def _foreign_comment(t: Trouble) -> Fix | None:
    if t.found not in ("//", "/*"):
        return None
    end = t.text.find("\n" if t.found == "//" else "*/", t.position)
    end = len(t.text) if end < 0 else end + (0 if t.found == "//" else 2)
    return here(t, "C0109", f"found `{t.found}`", hint="comments begin with `#`", skip=end - t.position)


_FOREIGN = {
    "%": ("TIMES MOD", "mod"), "&&": ("AND", "and"), "||": ("OR", "or"), "!": ("NOT", "not"),
    "...": ("DOTS", ".."), "..=": ("DOTS", ".."),
}  # fmt: skip
_TWICE = {"+": "write `n + 1`", "-": "write `n - 1`", "/": "write `floor(a / b)` for the whole part of a quotient"}
_RANGE = "`a..b` goes from a up to b, without b"


def _foreign_operator(t: Trouble) -> Fix | None:
    twice = t.found == "*" and t.last is not None and t.last.type == "TIMES"
    if twice or (t.found in ("**", "^") and "PLUS" in t.expected):
        return here(t, "C0109", f"found `{t.found}`, which is not an operator", hint="write a power as `pow(a, b)`")
    if t.found == "." and t.last and t.last.type == "DOTS":
        return here(t, "C0109", "found `...`, needed `..`", notes=(_RANGE,), skip=1)
    if t.last is not None and t.last.type in ("PLUS", "MINUS", "TIMES") and t.found == t.last.text:
        hint = _TWICE.get(t.found)
        if hint and t.after == t.position:
            return Fix(
                "C0109", f"found `{t.found * 2}`, which is not an operator", t.last.start, t.position + 1, hint=hint
            )
    if t.found == "?" and "PLUS" in t.expected:
        return here(t, "C0109", "found `?`, which is not an operator", hint="write `if CONDITION { .. } else { .. }`")
    terminals, word = _FOREIGN.get(t.found, ("", ""))
    terminal = next((name for name in reversed(terminals.split()) if name in t.expected), None)
    if terminal is None:
        return None
    note = (_RANGE,) if word == ".." else ()
    message = f"found `{t.found}`, needed `{word}`"
    return here(t, "C0109", message, notes=note, insert=terminal, sign=word, skip=len(t.found))


def _quotes(t: Trouble) -> Fix | None:
    if not t.found.startswith("'") or "STRING" not in t.expected:
        return None
    return here(t, "C0109", "found a string in `'`, needed `\"`", insert="STRING", skip=len(t.found))


def _hyphen_in_name(t: Trouble) -> Fix | None:
    if t.found != "-" or t.last is None or t.last.type != "NAME" or t.after != t.position or "MINUS" in t.expected:
        return None
    rest = re.compile(r"[A-Za-z0-9_-]+").match(t.text, t.position)
    if rest is None:
        return None
    whole = f"{t.last.text}{rest.group()}"
    start = t.last.start
    message, hint = f"found `-` in the name `{whole}`", f"write `{whole.replace('-', '_')}`"
    return Fix(
        "C0105", message, start, rest.end(), hint=hint, skip=rest.end() - t.position, names=tuple(whole.split("-")),
        notes=("names consist of letters, digits and `_`",),
    )  # fmt: skip


_NODE_LIST = re.compile(r'\b(?:rank|switch)\b(?:[^;{}"]|"[^"\n]*")*\Z')
_LINK_END = re.compile(r'\blink\b(?:[^;{}":]|"[^"\n]*")*\Z')
_BARE_NODE = re.compile(r"[\w./:@+-]+")


def _unquoted_node(t: Trouble) -> Fix | None:
    """``rank n-001, n001/gpu0;``, ``link 0000:17:00.0 <-> nv;``: names of nodes that need quotes."""
    listed_node = bool(t.expected & {"LSQB", "STRING"}) and _NODE_LIST.search(before(t))
    if not listed_node and not (t.expected & {"SIMPLEX", "PLUS"} and _LINK_END.search(before(t))):
        return None
    joined = t.last is not None and t.last.type in ("NAME", "NUMBER", "UNIT") and t.after == t.position
    start = max(t.text.rfind(sign, 0, t.position) for sign in " \t\n,;{") + 1 if joined else t.position
    name = _BARE_NODE.match(t.text, start)
    if (
        name is None
        or name.end() <= t.position
        or not re.search(r"[A-Za-z0-9](?:[-/:@+][A-Za-z0-9]|\.[A-Za-z])", name.group())
    ):
        return None
    message, hint = f"found `{name.group()}`, needed a name", f'write it in quotes: `"{name.group()}"`'
    note = "names of nodes stand in quotes, unless they consist of letters, digits and `_`"
    return Fix(
        "C0105", message, start, name.end(), hint=hint, notes=(note,), names=(name.group(),), drop_from=name.end()
    )  # fmt: skip


_NIC_OPTION = re.compile(r"\bnic\s*:\s*([A-Za-z0-9_-]*)\Z")


def _unquoted_pattern(t: Trouble) -> Fix | None:
    """``{ nic: mlx5_? }``, ``{ nic: *_0 }``: patterns that need quotes."""
    begun = _NIC_OPTION.search(before(t)) if t.found in ("*", "?") else None
    if begun is None:
        return None
    rest = re.compile(r"[A-Za-z0-9_*?-]*").match(t.text, t.position)
    end = rest.end() if rest else t.position + 1
    start = t.position - len(begun[1])
    hint = f'write it in quotes: `"{t.text[start:end]}"`'
    return Fix("C0105", f"found the pattern `{t.text[start:end]}`, needed quotes around it", start, end, hint=hint)


_EMITTED = re.compile(r"[A-Za-z0-9_-]+")
_NEXT_WORD = re.compile(r"\s*([A-Za-z_]\w*)?")


def _emit_without_name(t: Trouble) -> Fix | None:
    """``emit mpi-c;``, ``emit mpi-c sums;``, ``emit as mpi-c;``: a target without its collective."""
    if t.last is None or t.last.type != "NAME" or "AS" not in t.expected:
        return None
    start = t.last.start
    word = _EMITTED.match(t.text, start)
    if word is None or not re.search(r"\bemit\s+$", t.text[:start]):
        return None
    target, end, other = word.group(), word.end(), None
    message = f"found `{target}`, needed the name of a collective"
    if target == "as":
        named = _EMITTED.match(t.text, t.position)
        target, message = named.group() if named else "TARGET", "missing the name of a collective before `as`"
    elif "-" in target:
        other = _NEXT_WORD.match(t.text, end)
    elif t.found and t.found not in (";", "{", ","):
        return None
    else:
        target, message, start, end = "TARGET", f"missing `as`: found {t.what()}", t.position, t.position + len(t.found)
    if other is not None and other[1] == "as":
        return None  # a collective whose name has a hyphen
    name = other[1] if other is not None and other[1] and other[1] not in KEYWORDS else "NAME"
    words = [
        f"{one} is {what}" for one, what in (("NAME", "a collective"), ("TARGET", "a target")) if one in (name, target)
    ]
    hint = f"write `emit {name} as {target};`" + (f", where {' and '.join(words)}" if words else "")
    return Fix("C0111", message, start, end, hint=hint)


_NAMES = "names begin with a letter and consist of letters a to z, digits and `_`"


def _bad_name(t: Trouble) -> Fix | None:
    tail = re.compile(r"[^\x00-\x7f]\w*").match(t.text, t.position)
    if tail and t.last is not None and t.last.type in ("NAME", "WORD") and t.after == t.position:
        return _foreign_letters(t, t.last, tail.end())
    if not t.expected & {"NAME", "WORD"} or t.expected & {"NUMBER", "SEMI"}:
        return None
    match = re.compile(r"\d\w*|\w*[^\x00-\x7f]\w*|\"[^\"\n]*\"").match(t.text, t.position)
    if match is None or not match.group():
        return None
    terminal = "NAME" if "NAME" in t.expected else "WORD"
    message, digits = f"found `{match.group()}`, needed a name", match.group()[0].isdigit()
    return Fix(
        "C0105", message, t.position, match.end(), notes=(_NAMES,), insert=terminal, skip=len(match.group()),
        hint="put a letter before the digits" if digits and match.group().isascii() else None,
    )  # fmt: skip


def _foreign_letters(t: Trouble, last: Sign, end: int) -> Fix:
    """``größe``: the lexer ended the name before its first letter outside of ASCII."""
    start = last.start
    message = f"found `{t.text[start:end]}`, needed a name"
    return Fix("C0105", message, start, end, notes=(_NAMES,), skip=end - t.position, names=(last.text,))


def _unclosed(t: Trouble) -> Fix | None:
    """The end of the text, or a declaration in the middle of a block."""
    closing = {"LBRACE": ("RBRACE", "}"), "LPAR": ("RPAR", ")"), "LSQB": ("RSQB", "]")}
    if t.opener is None:
        return None
    terminal, sign = closing[t.opener.type]
    if terminal not in t.expected:
        return None
    declaration = t.found in DECLARATIONS[:6] and t.on_new_line and t.found.upper() not in t.expected
    ends = not t.found or declaration or (sign != "}" and (t.found in ";{}" or t.found in (":", "->", "<->")))
    if not ends:
        return None
    message = f"missing `{sign}`: found {t.what()}"
    return Fix("C0103", message, t.after, t.after + 1, insert=terminal, opener=t.opener)


def _missing_semicolon(t: Trouble) -> Fix | None:
    starts = t.found in KEYWORDS or t.found in ("", "}") or t.on_new_line
    if not starts or "SEMI" not in t.expected or "TOPOLOGY" in t.expected:  # after a block it is optional
        return None
    return Fix("C0102", f"missing `;`: found {t.what()}", t.after, t.after + 1, insert="SEMI")


def _statements_as_options(t: Trouble) -> Fix | None:
    """``using bfb { for ...``: the word was taken for an option's name."""
    if t.last is None or t.last.type != "WORD" or t.last.text not in STATEMENTS or "COLON" not in t.expected:
        return None
    start = t.last.start
    message = f"found the statement `{t.last.text}`, needed an option `name: value`"
    hint = "statements belong to `using steps { ... }`"
    return Fix("C0113", message, start, t.after, hint=hint, drop_from=t.opener.start if t.opener else None)


def _wrong_sign(t: Trouble) -> Fix | None:
    if t.found == "=" and t.last and t.last.type == "EQUAL" and t.after == t.position:
        return here(t, "C0107", "found `==`, needed `=`", skip=1)
    for terminal, sign, wrong in (("COLON", ":", ("=", ":=", "=>")), ("EQUAL", "=", (":", ":=", "=="))):
        if t.found in wrong and terminal in t.expected and not {"COMMA", "SEMI"} <= t.expected:
            hint = "an option is written `name: value`" if sign == ":" and "EQUAL" not in t.expected else None
            return here(
                t, "C0107", f"found `{t.found}`, needed `{sign}`", hint=hint, insert=terminal, skip=len(t.found)
            )  # fmt: skip
    if t.found in ("}", ",") and t.last and t.last.type == "WORD" and t.expected == {"COLON"}:
        hint = f"an option is written `{t.last.text}: value`"
        return here(t, "C0107", f"missing the value of `{t.last.text}`: found `{t.found}`", hint=hint)
    if t.expected == {"COLON"} and t.last and t.last.type == "WORD" and re.match(r"[\w\"]", t.found):
        hint = f"an option is written `{t.last.text}: value`"
        return Fix("C0107", f"missing `:`: found {t.what()}", t.after, t.after + 1, hint=hint, insert="COLON", sign=":")
    if t.found == "=" and "COMPARE" in t.expected:
        hint = "two numbers are compared with `==`"
        return here(t, "C0107", "found `=`, needed `==`", hint=hint, insert="COMPARE", sign="==", skip=1)
    return None


def _semicolon_in_options(t: Trouble) -> Fix | None:
    if t.found != ";" or "COMMA" not in t.expected or t.opener is None or t.opener.type != "LBRACE":
        return None
    return here(t, "C0107", "found `;`, needed `,` between options", insert="COMMA", skip=1)


def _arrow(t: Trouble) -> Fix | None:
    if "SIMPLEX" not in t.expected or t.found not in ("--", "<-", "=>", "<=>", "=", "<", ">", "<="):
        return None
    skip = len(re.compile(r"[-<=>]+").match(t.text, t.position).group())  # type: ignore[union-attr]
    sign = t.text[t.position : t.position + skip]
    hint = "`a -> b` is one link, `a <-> b` is one each way"
    message = f"found `{sign}`, needed `->` or `<->`"
    return Fix("C0108", message, t.position, t.position + skip, hint=hint, insert="DUPLEX", sign="<->", skip=skip)


def _missing_arrow(t: Trouble) -> Fix | None:
    """``link a - b``: the arrow was taken for a subtraction."""
    if "SIMPLEX" not in t.expected or "COMMA" in t.expected:
        return None
    hint = "`a -> b` is one link, `a <-> b` is one each way"
    return here(t, "C0108", f"found {t.what()}, needed `->` or `<->`", hint=hint)


def _link_without_braces(t: Trouble) -> Fix | None:
    """``without(pod, 0 -> 1)``: links are elements of a set."""
    if t.found not in ("->", "<->") or not {"RPAR", "COMMA"} <= t.expected:
        return None
    return here(t, "C0108", f"found `{t.found}` outside of braces", hint=f"a set of links is `{{a {t.found} b}}`")


_BOTH_ENDS = "`send shard SHARD from RANK to RANK` names both ends"
_FORMS = {
    "recv": _BOTH_ENDS, "receive": _BOTH_ENDS, "use": 'write `include "FILE";`',
    "using": "write `schedule NAME using SCHEDULER;`", "while": "loops are `for NAME in LOW..HIGH { .. }`",
    "else": "`else` follows the `}` of its `if`", "print": "`collc check` and `collc cost` print what a file means",
    **dict.fromkeys(("without", "degraded", "subset", "relabel"),
                    "operators make another topology: `topology bad = without(pod, {gpu[0, 3]});`"),
    "for": "loops stand in bodies: `together { for b in 0..4 { collective c[b] = ..; } }`",
    "repeat": "loops are `for NAME in LOW..HIGH { .. }`", "with": "`with { .. }` stands before the `;` of a topology",
}  # fmt: skip


def _unknown_keyword(t: Trouble) -> Fix | None:
    known = [word for word in dict.fromkeys((*DECLARATIONS, *STATEMENTS)) if word.upper() in t.expected]
    step = known == ["call", "send", "reduce"]
    if (len(known) < 4 and not step) or not re.match(r"[A-Za-z_]", t.found):
        return None
    kind = "statement" if "LINK" in t.expected or step else "declaration"
    if not step and (missing := assigned(t)):
        keyword, whole = missing
        message = f"missing `{keyword}` before `{t.found}`"
        return here(t, "C0111", message, hint=f"write `{whole}`", insert=keyword.upper(), sign=keyword)
    if word := foreign_word(t, known):
        return _replaced(t, kind, word)
    hint = _FORMS.get(t.found.lower()) or _bare(t) or nearest(t.found, known)
    from difflib import get_close_matches

    guess = get_close_matches(t.found, known, n=1, cutoff=0.75)
    note = f"a {kind} begins with {listed([f'`{word}`' for word in known], 'or')}"
    return here(
        t, "C0106", f"unknown {kind} `{t.found}`", hint=hint, notes=() if hint else (note,),
        insert=guess[0].upper() if guess else None, skip=len(t.found) if guess else 0,
    )  # fmt: skip


def _replaced(t: Trouble, kind: str, word: str) -> Fix:
    """Return the fix for a word of another language, with the line as it should be."""
    rest = t.text[t.position + len(t.found) :].split("\n", 1)[0].split("#")[0].split(";")[0].rstrip()
    hint = f"write `{word}{rest};`" if "{" not in rest and len(rest) < 60 else f"write `{word}`"
    message = f"unknown {kind} `{t.found}`"
    return here(t, "C0106", message, hint=hint, insert=word.upper(), sign=word, skip=len(t.found))


def _bare(t: Trouble) -> str | None:
    """Return the declaration of a collective or graph that stands alone, or the call of a block."""
    rest = t.text[t.position :].split("\n", 1)[0].split(";")[0].split("#")[0].strip()
    if "CALL" in t.expected and t.found not in FAMILIES.own and re.match(r"\w+\s*\([^{}]*\)\Z", rest):
        return f"write `call {rest};`"
    if t.found in ("allreduce", "allgather", "alltoall", "broadcast", "gather", "scatter") and " on " in rest:
        return f"write `collective grads = {rest};`"
    if "LINK" not in t.expected and (t.found in FAMILIES.own or t.found in OPERATORS) and "(" in rest:
        return f"write `topology pod = {rest};`"
    return None


def _unopened(t: Trouble) -> Fix | None:
    if t.found not in ("}", ")", "]") or t.opener is not None:
        return None
    sign = r"." if "SEMI" in t.expected else r".\s*;?"
    skip = len(re.compile(sign).match(t.text, t.position).group())  # type: ignore[union-attr]
    return here(t, "C0104", f"found `{t.found}` without its opening bracket", skip=skip)


_WORDS = ("USING", "AS", "ON", "IN", "SHARD", "FROM", "TO", "OF")


def _missing_word(t: Trouble) -> Fix | None:
    missing = next((name for name in _WORDS if name in t.expected), None)
    if missing is None or not re.match(r"\w", t.found) or not t.fits(t.position, missing):
        return None
    word = missing.lower()
    repair = t.found.upper() not in _WORDS  # `from` after a forgotten `of` would be taken for a name
    message = f"missing `{word}`: found {t.what()}"
    form = "send shard SHARD from RANK to RANK" if missing == "OF" else whole_form(t, missing)
    return here(t, "C0111", message, hint=f"write `{form}`", insert=missing if repair else None)


def _missing_brace(t: Trouble) -> Fix | None:
    if "COLON" in t.expected and t.found in ("send", "reduce"):
        hint = "write `at STEP: send shard SHARD from RANK to RANK;`"
        return Fix("C0111", f"missing `:`: found {t.what()}", t.after, t.after + 1, hint=hint, insert="COLON")
    if "LBRACE" not in t.expected or t.found not in KEYWORDS or not t.fits(t.position, "LBRACE"):
        return None
    message = f"missing `{{`: found {t.what()}"
    if _is_closed(t):
        return Fix("C0103", message, t.after, t.after + 1, hint="write `{` at the end of this line", insert="LBRACE")
    hint = f"write `{{ {t.found} ..; }}`: one statement needs braces too"
    return Fix("C0103", message, t.after, t.after + 1, hint=hint)


_FARTHEST = 100_000  # characters that are searched for the end of a body


def _is_closed(t: Trouble) -> bool:
    """Return whether the text has the `}` of the `{` that is missing: one more than is open, before a declaration."""
    depth, lowest = 0, 0
    for match in re.compile(r'#[^\n]*|"[^"\n]*"|^(?:topology|cluster|collective|schedule|emit)\b|[{}]', re.M).finditer(
        t.text, t.position, t.position + _FARTHEST
    ):
        if match.group()[0] not in '{}#"':
            break
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        lowest = min(lowest, depth)
    return -lowest > t.open_blocks


def _missing_comma(t: Trouble) -> Fix | None:
    if "COMMA" not in t.expected or not re.match(r"[\w\"({]", t.found) or not t.fits(t.position, "COMMA"):
        return None
    return Fix("C0112", f"missing `,`: found {t.what()}", t.after, t.after + 1, insert="COMMA")


SLIPS = (
    Slip('include "site.coll;', _unterminated_string),
    Slip("// a comment", _foreign_comment),
    Slip("topology t { rank n-001; }", _unquoted_node),
    Slip("cluster c = a on b { nic: mlx5_? };", _unquoted_pattern),
    *foreign_signs.ROWS,
    *foreign_lists.ROWS,
    *foreign_words.ROWS,
    *foreign_forms.ROWS,
    Slip("param n = 4 % 3;", _foreign_operator),
    Slip("include 'site.coll';", _quotes),
    Slip("emit msccl-xml;", _emit_without_name),
    Slip("topology my-pod = torus(3);", _hyphen_in_name),
    Slip("topology 3d = torus(3, 3, 3);", _bad_name),
    Slip("topology t = without(torus(3), 0 -> 1);", _link_without_braces),
    Slip("topology pod = torus(3, 3;", _unclosed),
    Slip("topology t { rank a; } }", _unopened),
    Slip("param n = 4\nparam m = 5;", _missing_semicolon),
    Slip("topology t { for i in 0..3 link a -> b; } }", _missing_brace),
    Slip("schedule g using steps { at 3 send shard 0 from 0 to 1; }", _missing_brace),
    Slip("schedule grads using bfb { for s in 0..3 { } }", _statements_as_options),
    Slip("emit grads as msccl-xml { channels = 4 };", _wrong_sign),
    Slip("emit grads as msccl-xml { channels: 4; runtime: rccl };", _semicolon_in_options),
    Slip("topology t { rank a, b; link a <= b; }", _arrow),
    Slip("topology t { rank a, b; link a - b; }", _missing_arrow),
    Slip("toplogy pod = torus(3);", _unknown_keyword),
    Slip("schedule grads bfb;", _missing_word),
    Slip("topology pod = torus(3 3);", _missing_comma),
)


# ---- in words

_SIGNS = {
    "SEMI": "`;`", "COMMA": "`,`", "COLON": "`:`", "EQUAL": "`=`", "DOTS": "`..`", "LBRACE": "`{`", "RBRACE": "`}`",
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "DUPLEX": "`<->`", "SIMPLEX": "`->`",
    "NUMBER": "a number", "STRING": "a string", "NAME": "a name", "WORD": "a name", "HYPHENATED": "a name",
    "UNIT": "a unit",
    "$END": "the end of the text", "PLUS": "`+`", "MINUS": "`-`", "TIMES": "`*`", "COMPARE": "a comparison",
}  # fmt: skip
_OPERATORS = frozenset({"PLUS", "MINUS", "TIMES", "MOD", "COMPARE", "AND", "OR", "DOTS", "UNIT"})
_OPERANDS = frozenset({"NUMBER", "STRING", "NAME", "LPAR", "LBRACE", "MINUS", "NOT", "IMPORT", "HYPHENATED", "GLOB"})


def _needed(expected: frozenset[str]) -> str:
    """Return in words what may stand in a place."""
    rest = set(expected)
    words: list[str] = []
    if {"NUMBER", "NAME", "LPAR"} <= rest:
        rest -= _OPERANDS
        words.append("an expression")
    elif "PLUS" in rest:
        if {"COMMA", "RBRACE"} <= rest:  # in a set, few elements are links
            rest -= {"DUPLEX", "SIMPLEX"}
        rest -= _OPERATORS | ({"LPAR", "LSQB"} if len(rest - _OPERATORS) > 2 else set())
    for kind, mark in (("a statement", "LINK"), ("a declaration", "TOPOLOGY")):
        if mark in rest:
            rest -= set(KEYWORDS.values())
            words.append(kind)
    words += sorted({_SIGNS.get(name, f"`{name.lower()}`") for name in rest})
    return listed(words or ["something else"], "or")
