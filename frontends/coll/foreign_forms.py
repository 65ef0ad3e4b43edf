"""Forms from elsewhere: arguments, indices, lists, loops and links as other languages write them."""

from __future__ import annotations

import re

from .families import FAMILIES, OPERATORS
from .trouble import (
    DECLARATIONS,
    Fix,
    Slip,
    Trouble,
    before,
    bracketed,
    called,
    closing_offset,
    comma_parts,
    here,
    rest_of_line,
)

__all__ = ["ROWS"]


def _listed_arguments(t: Trouble) -> Fix | None:
    """``torus([4, 4])``."""
    name = called(t)
    if t.found != "[" or name is None or "NUMBER" not in t.expected or t.opener is None:
        return None
    inner, end = bracketed(t.text, t.position), closing_offset(t.text, t.position)
    alone = not t.text[t.opener.end : t.position].strip() and t.text[end:].lstrip().startswith(")")
    hint = f"write `{name}({inner})`" if alone else f"a set is `{{{inner}}}`"
    return here(t, "C0109", "found a list in `[ ]`", hint=hint, drop_from=closing_offset(t.text, t.opener.start))


def _body_as_topology(t: Trouble) -> Fix | None:
    """``collective c = allreduce on { rank a, b; link a -> b; };``."""
    if t.last is None or t.opener is None or t.opener.type != "LBRACE" or t.last.text not in ("rank", "switch", "link"):
        return None
    head = t.text[: t.opener.start].rstrip()
    if t.text[t.opener.end : t.last.start].strip() or not head.endswith((" on", "=")):
        return None
    hint = "declare `topology t { .. }` above, and write its name here"
    end = closing_offset(t.text, t.opener.start)
    return Fix("C0109", "found a body, needed a topology", t.opener.start, t.opener.end, hint=hint, drop_from=end)


def _parenless_call(t: Trouble) -> Fix | None:
    """``topology pod = torus 4, 4;``."""
    if t.last is None or t.last.type != "NAME" or "LPAR" not in t.expected or not t.found[:1].isdigit():
        return None
    if t.last.text not in FAMILIES and t.last.text not in OPERATORS:
        return None
    match = re.compile(r"\d+(?:\s*[,x ]\s*\d+)*").match(t.text, t.position)
    numbers = re.findall(r"\d+", match.group()) if match else [t.found]
    hint = f"write `{t.last.text}({', '.join(numbers)})`"
    return Fix("C0103", f"missing `(`: found `{t.found}`", t.after, t.after + 1, hint=hint)


def _named_argument(t: Trouble) -> Fix | None:
    """``biring(m: 8)``, ``biring(m=8)``."""
    name = called(t)
    if t.found not in (":", "=", ":=") or name is None or t.last is None or t.last.type != "NAME" or t.opener is None:
        return None
    inner = re.sub(r"\b[A-Za-z_]\w*\s*:?[:=]\s*", "", bracketed(t.text, t.opener.start))
    message = f"found `{t.last.text}{t.found}`, the name of an argument"
    hint = f"arguments have no names: write `{name}({inner})`"
    return Fix("C0109", message, t.last.start, t.last.end, hint=hint, drop_from=closing_offset(t.text, t.opener.start))


def _indices_in_parentheses(t: Trouble) -> Fix | None:
    """``rank gpu(4);``."""
    if t.found != "(" or "LSQB" not in t.expected or "LPAR" in t.expected or t.last is None:
        return None
    hint = f"write `{t.last.text}[{bracketed(t.text, t.position)}]`"
    return here(t, "C0109", "found `(`, needed `[`", hint=hint, names=(t.last.text,))


def _dotted(t: Trouble) -> Fix | None:
    """``gpu.0``."""
    match = re.compile(r"\.\s*(\w+)").match(t.text, t.position)
    if t.found != "." or match is None or t.last is None or t.last.type not in ("NAME", "WORD"):
        return None
    if not match[1][0].isdigit():
        hint = f"names have no `.`: write `{match[1]}`"
        code = "C0129" if re.search(r":\s*\w+\Z", before(t)) else "C0109"  # once, with what the name is found to be
        return Fix(
            code, f"found `{t.last.text}.{match[1]}`", t.last.start, match.end(), hint=hint, names=(t.last.text,)
        )
    message, hint = f"found `{t.last.text}.{match[1]}`", f"indices stand in brackets: write `{t.last.text}[{match[1]}]`"
    return Fix("C0109", message, t.last.start, match.end(), hint=hint)


def _infix_operator(t: Trouble) -> Fix | None:
    """``topology bad = pod without {3};``."""
    operator = _INFIX.get(t.found)
    if operator is None or "SEMI" not in t.expected or not t.expected & {"WITH", "LBRACE"}:
        return None
    match = re.search(r"(?:\btopology\s+\w+\s*=|\bon\b)\s*([^;{}]*?)\s*\Z", before(t))
    if match is None:
        return None
    given = re.compile(r"\w+\s*([^;\n]*)").match(t.text, t.position)
    parts = given[1].strip() if given else ""
    parts = parts if parts.startswith("{") else f"{{{parts}}}"
    whole = f"{operator}({match[1]}, {parts}{', 1/2' * (operator == 'degraded')})"
    return here(t, "C0101", f"found `{t.found}`, needed `;` or `{'with' if 'WITH' in t.expected else '{'}`",
                hint=f"write `{whole}`")  # fmt: skip


_INFIX = {
    **dict.fromkeys(("without", "except", "excluding", "minus", "less", "but"), "without"),
    "degraded": "degraded", "subset": "subset", "relabel": "relabel",
}  # fmt: skip


def _pair(t: Trouble) -> Fix | None:
    """``without(pod, {(0, 1)})``, and ``cayley(group, {(0, 1)})``."""
    if t.found != "," or t.opener is None or t.opener.type != "LPAR" or called(t) is not None:
        return None
    ends = comma_parts(bracketed(t.text, t.opener.start))
    if len(ends) != 2 or not re.search(r"\([^;]*\{[^;{}]*\Z", before(t)[: t.opener.start - t.position]):
        return None
    end = closing_offset(t.text, t.opener.start)
    if re.search(r"\bcayley\s*\([^;]*\Z", before(t)):
        hint = "elements are numbers: (a, b) of `metacyclic(m, k, r)` or of `abelian(m, k)` is a * k + b"
        return Fix("C0109", "found a pair in `( )`, needed the number of an element", t.opener.start, end, hint=hint)
    hint = f"a link is `{ends[0]} <-> {ends[1]}`, and `{ends[0]} -> {ends[1]}` in one direction"
    return Fix("C0109", "found a pair in `( )`, needed a link", t.opener.start, end, hint=hint)


def _every_index(t: Trouble) -> Fix | None:
    """``gpu[*]``, ``gpu[:]``."""
    if t.found not in ("*", ":", "]") or t.last is None or t.last.type not in ("LSQB", "COMMA"):
        return None
    if t.last.type == "COMMA" and (t.found == "]" or t.opener is None or t.opener.type != "LSQB"):
        return None
    if re.search(r"\([^;]*\{[^;{}]*\Z", before(t)):
        hint = "name each node, or write the numbers of ranks: `{0..8}`"
        return here(t, "C0109", f"found `{t.found}`, needed an index", hint=hint)
    name = re.search(r"([A-Za-z_]\w*)\s*\[\Z", before(t))
    declared = re.search(r"\b(rank|switch)\b[^;{}]*\Z", before(t))
    if declared and name:
        hint = f"write `{declared[1]} {name[1]}[8];`, or without brackets for one"
        return here(t, "C0101", f"found `{t.found}`, needed a number of nodes", hint=hint, names=(name[1],))
    hint = f"name every node in a loop: `for i in 0..4 {{ .. {name[1] if name else 'gpu'}[i] .. }}`"
    return here(t, "C0109", f"found `{t.found}`, needed an index", hint=hint)


def _second_brackets(t: Trouble) -> Fix | None:
    """``rank gpu[2][4];``."""
    if t.found != "[" or t.last is None or t.last.type != "RSQB" or t.after != t.position:
        return None
    first = re.search(r"([A-Za-z_]\w*)\s*\[([^\[\]]*)\]\Z", before(t))
    if first is None:
        return None
    inner, end = bracketed(t.text, t.position), closing_offset(t.text, t.position)
    hint = f"write `{first[1]}[{first[2]}, {inner}]`"
    message = "found a second pair of brackets: all indices stand in one"
    return Fix("C0109", message, t.position, end, hint=hint, names=(first[1],))


def _options_in_parentheses(t: Trouble) -> Fix | None:
    """``schedule grads using ring(2);`` and ``collective g = allreduce(pod);``."""
    if t.found != "(" or t.last is None or t.last.type != "WORD":
        return None
    inner = bracketed(t.text, t.position)
    if "ON" in t.expected:
        on = comma_parts(inner)[0] or "TOPOLOGY"
        return here(t, "C0111", "missing `on`: found `(`", hint=f"write `{t.last.text} on {on}`")
    if "LBRACE" not in t.expected:
        return None
    hint = f"write `{t.last.text};`" if not inner else f"options stand in braces: `{t.last.text} {{ NAME: {inner} }}`"
    return here(t, "C0109", "found `(`, needed `;` or `{`", hint=hint)


def _inclusive_range(t: Trouble) -> Fix | None:
    """``0..=7``."""
    if t.found != "=" or t.last is None or t.last.type != "DOTS":
        return None
    high = re.compile(r"=\s*(\d+)").match(t.text, t.position)
    hint = f"`a..b` ends before b: write `..{int(high[1]) + 1}`" if high else "`a..b` ends before b"
    return Fix("C0109", "found `..=`, needed `..`", t.last.start, t.position + 1, hint=hint, skip=1)


def _range_to(t: Trouble) -> Fix | None:
    """``for i in 0 to 3``, ``0:3`` and ``0..3..1``."""
    if not re.search(r"\bin\s+[^;{}]*\Z", before(t)) or "LBRACE" not in t.expected:
        return None
    if t.found == ".." and "DOTS" not in t.expected:
        return here(t, "C0109", "found a second `..`", hint="a stride stands after `by`: `for i in 0..8 by 2 { .. }`")
    if t.found in ("to", "until", "through"):
        message, hint = f"found `{t.found}`, needed `..`", "`a..b` goes from a up to b, without b"
        return here(t, "C0109", message, hint=hint, drop_from=t.position + len(t.found))
    return None


def _list_of_values(t: Trouble) -> Fix | None:
    """``for i in [0, 1]``."""
    if t.found != "[" or t.last is None or t.last.type != "IN":
        return None
    inner, end = bracketed(t.text, t.position), closing_offset(t.text, t.position)
    return Fix("C0109", "found a list in `[ ]`", t.position, end, hint=f"write `{{{inner}}}`", drop_from=end)


def _several_variables(t: Trouble) -> Fix | None:
    """``for i, j in 0..4``."""
    match = re.compile(r",\s*(\w+)\s+in\s+([^,;{}]+)").match(t.text, t.position)
    if t.found != "," or t.last is None or "IN" not in t.expected or match is None:
        return None
    domain = match[2].strip()
    hint = f"write `for {t.last.text} in {domain}, {match[1]} in {domain}`"
    return here(t, "C0111", f"missing `in` after `{t.last.text}`: found `,`", hint=hint)


def _several_values(t: Trouble) -> Fix | None:
    """``param a = 2, b = 8;``, ``include "a", "b";``, ``at 0, 1: ..`` and ``to 1, 3;``."""
    if t.found != ",":
        return None
    text = before(t)
    end = re.compile(r"[^;{}]*").match(t.text, t.position)
    past = end.end() if end else t.position + 1
    for pattern, message, hint in _ONE_EACH:
        if re.search(pattern, text):
            return here(t, "C0112", f"found `,`, needed {message}", hint=hint, drop_from=past)
    return None


_ONE_EACH = (
    (r"\b(param|let)\s+\w+\s*=[^;{}]*\Z", "`;`", "write one declaration for each name"),
    (r"\binclude\s+\"[^\"\n]*\"\s*\Z", "`;`", "write one `include` for each file"),
    (r"\bat\s+[^:;{}]*\Z", "one step", "write a loop: `for s in 0..2 { at s: .. }`"),
    (r"\b(send|reduce)\b[^;{}]*\bto\b[^;{}]*\Z", "one target", "write one transfer for each target"),
    (r"\bon\s+[^;{}]*\Z", "`;` or `{`", "options stand in braces: `{ size: 64 MiB, op: sum }`"),
)


def _thousands(t: Trouble) -> Fix | None:
    """``size: 1,000 B``."""
    match = re.compile(r"(\d{3})((?:,\d{3})*)\s*([A-Za-z/]*)").match(t.text, t.position)
    number = re.search(r"(\d{1,3}(?:,\d{3})*),\Z", before(t))
    if match is None or number is None or t.last is None or t.last.type != "COMMA" or "WORD" not in t.expected:
        return None
    written = f"{number[1]},{match[1]}{match[2]}"
    whole = " ".join(filter(None, (written.replace(",", ""), match[3])))
    hint = f"numbers have no `,`: write `{whole}`"
    start = t.position - len(number.group())
    return Fix("C0129", f"found `{written}`", start, match.end(), hint=hint, skip=match.end() - t.position, insert=None)


def _stray_semicolons(t: Trouble) -> Fix | None:
    """``topology pod = torus(3, 3);;``."""
    if t.found != ";" or not t.expected & {"TOPOLOGY", "LET"}:
        return None
    match = re.compile(r";(?:\s*;)*").match(t.text, t.position)
    assert match is not None
    return Fix("C0101", "found `;` without a declaration or statement", t.position, t.position + 1, hint="remove it",
               skip=len(match.group()))  # fmt: skip


def _one_pair(t: Trouble) -> Fix | None:
    """``torus((3, 3))``."""
    if t.found != "," or t.opener is None or t.opener.type != "LPAR" or "RPAR" not in t.expected:
        return None
    outer = re.search(r"([A-Za-z_]\w*)\s*\(\s*\Z", t.text[max(t.opener.start - 80, 0) : t.opener.start])
    if outer is None or "COMMA" in t.expected:
        return None
    hint = f"arguments stand in one pair: write `{outer[1]}({bracketed(t.text, t.opener.start)})`"
    return here(t, "C0109", "found `,`, needed `)`", hint=hint, drop_from=closing_offset(t.text, t.opener.start))


def _c_loop(t: Trouble) -> Fix | None:
    """``for (i = 0; i < 4; i++) {``."""
    if t.found != "(" or t.last is None or t.last.type != "FOR":
        return None
    match = re.compile(r"\(\s*(?:\w+\s+)?(\w+)\s*=\s*([^;\n]+);\s*\w+\s*(<=?)\s*([^;\n]+);").match(t.text, t.position)
    hint = "write `for i in 0..4 { .. }`, without parentheses"
    if match:
        high = match[4].strip() + (" + 1" if match[3] == "<=" else "")
        hint = f"write `for {match[1]} in {match[2].strip()}..{high} {{ .. }}`"
    end = closing_offset(t.text, t.position)
    return Fix("C0109", "found a loop as in C", t.position, end, hint=hint, drop_from=end)


def _colon_block(t: Trouble) -> Fix | None:
    """``for i in 0..4: link ..``: Python's blocks."""
    if t.found != ":" or "LBRACE" not in t.expected or t.expected & {"COLON", "NUMBER"}:
        return None
    if t.expected >= {"EQUAL", "LSQB"}:  # the name of a collective
        return None
    if re.compile(r":\s*\{").match(t.text, t.position):
        return here(t, "C0109", "found `:` before `{`", hint="remove the `:`", skip=1)
    return here(t, "C0109", "found `:`, needed `{`", hint="a body stands in braces: `{ .. }`", drop_from=t.position + 1)


def _double_colon(t: Trouble) -> Fix | None:
    if t.found != ":" or t.last is None or t.last.type != "COLON":
        return None
    return Fix("C0107", "found a second `:`, needed one", t.last.start, t.position + 1, hint="remove one `:`", skip=1)


def _else_if(t: Trouble) -> Fix | None:
    if t.found not in ("elif", "elseif", "elsif"):
        return None
    return here(t, "C0109", f"found `{t.found}`, needed `else if`", hint="write `} else if CONDITION { .. }`")


def _with_without_braces(t: Trouble) -> Fix | None:
    if t.last is None or t.last.type != "WITH" or t.found == "{":
        return None
    inner = rest_of_line(t).split(";")[0].strip()
    form = re.match(r"\w+\s*[:=]\s*[^,;{}]+(?:,\s*\w+\s*[:=]\s*[^,;{}]+)*\Z", inner)
    shown = re.sub(r"\s*[:=]\s*", ": ", inner) if form else "bandwidth: 25 Gbps, latency: 1 us"
    return here(t, "C0103", f"missing `{{`: found {t.what()}", hint=f"write `with {{ {shown} }}`")


def _missing_with(t: Trouble) -> Fix | None:
    """``topology pod = torus(3) { bandwidth: 25 Gbps };``."""
    if t.found != "{" or "WITH" not in t.expected or "LBRACE" in t.expected or "TOPOLOGY" in t.expected:
        return None
    hint = "write `with { bandwidth: 25 Gbps, latency: 1 us }`"
    return here(t, "C0111", "missing `with`: found `{`", hint=hint, insert="WITH", sign="with")


def _comma_before_braces(t: Trouble) -> Fix | None:
    if t.found != "," or "LBRACE" not in t.expected or not re.compile(r",\s*\{").match(t.text, t.position):
        return None
    return here(t, "C0101", "found `,`, needed `{`", hint="remove the comma", skip=1)


def _nested_topology(t: Trouble) -> Fix | None:
    """``topology a { topology b = torus(3); .. }``, on one line: no `}` was forgotten."""
    if (
        t.found not in (*DECLARATIONS[:7], "import")
        or "LET" not in t.expected
        or "TOPOLOGY" in t.expected
        or t.on_new_line
    ):
        return None
    message = f"found the declaration `{t.found}` in a body"
    hint = "put it before the topology or schedule that it stands in"
    return here(t, "C0140", message, hint=hint, drop_from=t.position + len(t.found))


def _link_attributes(t: Trouble) -> Fix | None:
    """``link a <-> b { bandwidth: 25 GB/s };`` and ``link a <-> b : bandwidth = 25 GB/s;``."""
    if "link" not in before(t):
        return None
    quantities = re.findall(r"\d[\d.]*\s*[A-Za-zµ][\w/]*", rest_of_line(t).split("}")[0].split("link")[0])
    form = f"write `: {', '.join(quantities[:2]) or '25 GB/s, 1 us'};` after the ends"
    ended = {"COLON", "SEMI"} <= t.expected and "EQUAL" not in t.expected and "LBRACE" not in t.expected
    if ended and (t.found in ("{", "with", "(", ",") or t.found.lower() in _ATTRIBUTES):
        return here(t, "C0109", f"found {t.what()}, needed `:` and the link's bandwidth and latency", hint=form)
    named = t.last is not None and t.last.type == "NAME" and t.last.text.lower() in _ATTRIBUTES
    if named and t.found in ("=", ":", ":=") and t.last is not None and re.search(r"[:,]\s*\w+\s*\Z", before(t)):
        message = f"found `{t.last.text}`: the units tell a bandwidth from a latency"
        return Fix("C0109", message, t.last.start, t.last.end, hint=form)
    return None


_ATTRIBUTES = frozenset({"bandwidth", "bw", "latency", "lat", "delay", "rate", "speed", "capacity", "alpha", "beta"})


def _second_arrow(t: Trouble) -> Fix | None:
    if t.found not in ("->", "<->") or not {"COLON", "SEMI"} <= t.expected:
        return None
    hint = f"write one `link` for each: `link a {t.found} b; link b {t.found} c;`"
    return here(t, "C0108", "found a second arrow", hint=hint)


def _long_arrow(t: Trouble) -> Fix | None:
    """``link a ---> b;``: all but the last two signs were taken for subtractions."""
    match = re.search(r"(<?-{2,}|<?-+\s+)\Z", before(t))
    if t.found != ">" or match is None or not re.search(r"\blink\b[^;{}]*\Z", before(t)):
        return None
    start = t.position - len(match[1])
    message = f"found `{match[1]}>`, needed `->` or `<->`"
    hint = "`a -> b` is one link, `a <-> b` is one each way"
    return Fix("C0108", message, start, t.position + 1, hint=hint)


def _listed_ends(t: Trouble) -> Fix | None:
    """``link (a, b);`` and ``link a, b;``."""
    if t.found != "," or not re.search(r"\blink\s*\(?[^;{}()]*\Z", before(t)):
        return None
    if "SIMPLEX" not in t.expected and not ("RPAR" in t.expected and re.search(r"\blink\s*\([^;{}()]*\Z", before(t))):
        return None
    hint = "write `link a -> b` for one link, `link a <-> b` for one each way"
    return here(t, "C0108", "found `,`, needed `->` or `<->`", hint=hint)


def _late_step(t: Trouble) -> Fix | None:
    """``send shard 0 from 0 to 1 at 0;``."""
    if t.found != "at" or "SEMI" not in t.expected or t.on_new_line or "PLUS" not in t.expected:
        return None
    match = re.search(r"\b(send|reduce)\b([^;{}]*)\Z", before(t))
    if match is None:
        return None
    step = re.compile(r"at\s+([^;{}\n]*)").match(t.text, t.position)
    hint = f"write `at {step[1].strip() if step else 'STEP'}: {match[1]}{match[2].rstrip()};`"
    return here(t, "C0111", "found `at` after the transfer, needed it before", hint=hint, drop_from=t.position + 2)


def _no_shard(t: Trouble) -> Fix | None:
    """``send 0 to 1;``."""
    match = re.compile(r"(?:from\s+)?([^;{}\n]+?)\s*(?:\bto\b|->|,)\s*([^;{}\n]+)").match(t.text, t.position)
    if t.last is None or t.last.type not in ("SEND", "REDUCE") or match is None or "shard" in match.group():
        return None
    form = f"{t.last.text} shard 0 from {match[1].strip()} to {match[2].strip()};"
    hint = f"say which shard: `{form}`"
    return here(t, "C0111", f"missing `shard`: found {t.what()}", hint=hint, drop_from=t.position + 1)


def _several_shards(t: Trouble) -> Fix | None:
    """``send shard 0, 1 from 0 to 1;``."""
    hint = "several shards stand in a set: `send shards {0, 1} from 0 to 1;`"
    if t.found not in (",", "..") or "FROM" not in t.expected:
        return None
    return here(t, "C0112" if t.found == "," else "C0109", f"found `{t.found}`, needed one shard", hint=hint)


_OPERATIONS = {"+": "sum", "*": "prod", "&": "band", "|": "bor", "^": "bxor", "&&": "land", "||": "lor"}


def _operation_sign(t: Trouble) -> Fix | None:
    """``op: +``."""
    if t.found not in _OPERATIONS or not re.search(r"\bop\s*[:=]\s*\Z", before(t)):
        return None
    word = _OPERATIONS[t.found]
    terminal = "NAME" if "NAME" in t.expected else None
    return here(
        t, "C0109", f"found `{t.found}`, needed an operation", hint=f"write `{word}`", insert=terminal,
        sign=word if terminal else None, skip=len(t.found) if terminal else 0,
    )  # fmt: skip


def _several_schedulers(t: Trouble) -> Fix | None:
    """``schedule g using bfb, ring;`` and ``emit g as mpi-c, ir;``."""
    if t.found != "," or t.last is None or t.last.type != "WORD" or "LBRACE" not in t.expected:
        return None
    if re.search(r"\busing\s+[\w-]+\s*\Z", before(t)):
        message, hint = "found `,`, needed one scheduler", "`using auto` compares all of them"
    elif re.search(r"\bas\s+[\w-]+\s*\Z", before(t)):
        message, hint = "found `,`, needed one target", "write one `emit` for each target"
    else:
        return None
    return here(t, "C0101", message, hint=hint)


def _output_file(t: Trouble) -> Fix | None:
    """``emit g as mpi-c to "x.c";``."""
    if t.found not in ("to", "into", "in", ">", "->") or not re.search(r"\bas\s+[\w-]+\s*\Z", before(t)):
        return None
    file = re.compile(r"\S+\s*\"?([\w./-]*)").match(t.text, t.position)
    hint = f"the command line names the file: `-o {file[1] if file and file[1] else 'FILE'}`"
    return here(t, "C0101", f"found `{t.found}`, needed `;` or `{{`", hint=hint)


def _exponent(t: Trouble) -> Fix | None:
    """``size: 1e6 B``: the exponent was read as the unit."""
    match = re.search(r"(\d+(?:\.\d+)?)[eE](\d{1,2})\s*\Z", before(t))
    if match is None or t.last is None or t.last.type != "UNIT" or not re.match(r"[A-Za-z]", t.found):
        return None
    unit = re.compile(r"[A-Za-z]+(?:/s)?").match(t.text, t.position)
    skip = len(unit.group()) if unit else len(t.found)
    number = int(float(match[1]) * 10 ** int(match[2])) if int(match[2]) < 16 else "..."
    start = t.position - len(match.group())
    hint = f"numbers have no exponent: write `{number} {unit.group() if unit else t.found}`"
    return Fix("C0123", f"found `{match.group().strip()}`", start, t.last.end, hint=hint, skip=skip)


def _rank_number(t: Trouble) -> Fix | None:
    """``rank 4;``."""
    if t.last is None or t.last.type not in ("RANK", "SWITCH") or not t.found.isdigit():
        return None
    if re.compile(r"\d+[A-Za-z_]").match(t.text, t.position):
        return None
    form = f"write `{t.last.text} {'gpu' if t.last.text == 'rank' else 'leaf'}[{t.found}];`"
    return here(t, "C0105", f"found `{t.found}`, needed a name", hint=form)


#: each with an example; the first that recognizes the mistake answers
ROWS = (
    Slip("collective g = allreduce on { rank a, b; link a -> b; };", _body_as_topology),
    Slip("collective g = allreduce on pod, { op: sum };", _comma_before_braces),
    Slip("param n = 4;;", _stray_semicolons),
    Slip("param a = 2, b = 8;", _several_values),
    Slip("topology t { for i in 0..=7 { } }", _inclusive_range),
    Slip("topology t { for i in 0 to 3 { } }", _range_to),
    Slip("topology t { for i in [0, 1] { } }", _list_of_values),
    Slip("topology t { for i, j in 0..4 { } }", _several_variables),
    Slip("collective g = allreduce on pod { size: 1,000 B };", _thousands),
    Slip("topology t = torus((3, 3));", _one_pair),
    Slip("schedule g using bfb, ring;", _several_schedulers),
    Slip('emit g as mpi-c to "x.c";', _output_file),
    Slip("collective g = allreduce on pod { op: + };", _operation_sign),
    Slip("topology t = torus([4, 4]);", _listed_arguments),
    Slip("topology t = torus 4, 4;", _parenless_call),
    Slip("topology t = biring(m: 8);", _named_argument),
    Slip("topology t { rank gpu(4); }", _indices_in_parentheses),
    Slip("topology t { rank gpu[2][4]; }", _second_brackets),
    Slip("topology t { rank g[2]; link g.0 -> g.1; }", _dotted),
    Slip("topology t { rank g[2]; link g[*] -> g[0]; }", _every_index),
    Slip("topology t = torus(4) without {3};", _infix_operator),
    Slip("topology t = without(torus(4), {(0, 1)});", _pair),
    Slip("schedule g using steps { at 0: send 0 to 1; }", _no_shard),
    Slip("schedule g using ring(2);", _options_in_parentheses),
    Slip("topology t { for (i = 0; i < 4; i++) { link i -> 0; } }", _c_loop),
    Slip("topology t { for i in 0..4: link i -> 0; }", _colon_block),
    Slip("topology a { link x -> y :: 3 us; }", _double_colon),
    Slip("topology t { if 1 < 2 { rank a; } elif 2 < 3 { rank b; } }", _else_if),
    Slip("topology t = torus(3) with bandwidth: 25 Gbps;", _with_without_braces),
    Slip("topology t = torus(3) { bandwidth: 25 Gbps };", _missing_with),
    Slip("topology a { rank g; topology b = torus(3); }", _nested_topology),
    Slip("topology a { link x <-> y { bandwidth: 25 GB/s }; }", _link_attributes),
    Slip("topology a { link x -> y -> z; }", _second_arrow),
    Slip("topology a { link x ---> y; }", _long_arrow),
    Slip("topology a { link (x, y); }", _listed_ends),
    Slip("schedule g using steps { send shard 0 from 0 to 1 at 0; }", _late_step),
    Slip("schedule g using steps { at 0: send shard 0, 1 from 0 to 1; }", _several_shards),
    Slip("collective g = allreduce on pod { size: 1e6 B };", _exponent),
    Slip("topology t { rank 4; }", _rank_number),
)
