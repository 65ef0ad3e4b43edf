"""Words from elsewhere: keywords, types and prepositions of other languages, and words that do not belong."""

from __future__ import annotations

import re

from .families import FAMILIES, OPERATORS
from .kinds import PREDEFINED
from .trouble import KEYWORDS, Fix, Slip, Trouble, before, bracketed, called, closing_offset, here, rest_of_line

__all__ = ["ROWS", "assigned", "foreign_word"]


#: a word of another language or habit -> the keyword
_WORDS = {
    "network": "topology", "graph": "topology", "cluster": "topology", "fabric": "topology", "topo": "topology",
    "machine": "topology", "parallel": "together", "concurrent": "together", "simultaneously": "together",
    "coll": "collective", "operation": "collective", "algorithm": "schedule",
    "algo": "schedule", "sched": "schedule", "output": "emit", "export": "emit", "generate": "emit", "write": "emit",
    "target": "emit", "require": "include", "source": "include", "load": "include", "const": "param",
    "constant": "param", "var": "param", "def": "param", "val": "let", "auto": "let", "set": "let",
    "int": "param", "integer": "param", "float": "param", "parameter": "param", "variable": "param",
}  # fmt: skip
_STATEMENT_WORDS = {
    "node": "rank", "nodes": "rank", "gpu": "rank", "gpus": "rank", "ranks": "rank", "host": "rank", "device": "rank",
    "process": "rank", "proc": "rank", "router": "switch", "switches": "switch", "hub": "switch", "edge": "link",
    "links": "link", "connect": "link", "wire": "link", "cable": "link", "step": "at", "round": "at", "time": "at",
    "copy": "send", "put": "send", "transfer": "send", "move": "send", "add": "reduce", "accumulate": "reduce",
    "const": "let", "var": "let", "int": "let", "def": "let", "set": "let", "val": "let", "foreach": "for",
}  # fmt: skip


def foreign_word(t: Trouble, known: list[str]) -> str | None:
    """Return the keyword that a word of another language means, if it may stand here as the word does."""
    statement = "LINK" in t.expected or "SEND" in t.expected
    word = (_STATEMENT_WORDS if statement else _WORDS).get(t.found.lower())
    if t.found.lower() in known and t.found not in known:
        return t.found.lower()
    named = word == "together" or re.compile(r"\w+\s*(?:<[^>\n]*>\s*)?[\w\"'“([]").match(t.text, t.position)
    return word if word in known and named else None


_ASSIGNED = re.compile(r"[A-Za-z_]\w*\s*:?=(?!=)\s*([\w-]*)([^;#\n]*)")


def assigned(t: Trouble) -> tuple[str, str] | None:
    """Return the keyword that is missing before ``pod = torus(3, 3);`` and the whole; None without an assignment."""
    match = _ASSIGNED.match(t.text, t.position)
    if match is None:
        return None
    keyword = "topology" if match[1] in FAMILIES or match[1] in OPERATORS else "param"
    if "LINK" in t.expected or "SEND" in t.expected:
        keyword = "let"
    elif match[1] in PREDEFINED or re.match(r"\s+on\b", match[2]):
        keyword = "collective"
    return keyword, f"{keyword} {match.group().strip()};"


_TYPES = frozenset({
    "int", "integer", "float", "double", "string", "str", "bool", "long", "auto", "number", "size", "bandwidth", "time",
    "const", "static",
})  # fmt: skip


def _typed(t: Trouble) -> Fix | None:
    """``param int n = 4;``."""
    if t.last is None or t.last.type != "NAME" or t.last.text not in _TYPES or "EQUAL" not in t.expected:
        return None
    if not re.match(r"[A-Za-z_]", t.found):
        return None
    keyword = re.search(r"(\w+)\s+\w+\s*\Z", before(t))
    hint = f"write `{keyword[1] if keyword else 'param'} {rest_of_line(t).split('#')[0].split(';')[0].strip()};`"
    message = f"found the type `{t.last.text}`: names have no types"
    return Fix("C0109", message, t.last.start, t.last.end, hint=hint, names=(t.found, t.last.text))


def _no_value(t: Trouble) -> Fix | None:
    """``param n;``."""
    if t.found not in (";", ",") or t.last is None or t.last.type != "NAME" or "EQUAL" not in t.expected:
        return None
    keyword = re.search(r"\b(param|let)\s+\w+\s*\Z", before(t))
    if keyword is None:
        return None
    also = "; `-D` then gives another one" if keyword[1] == "param" else ""
    hint = f"give it a value: `{keyword[1]} {t.last.text} = 4;`{also}"
    return here(t, "C0111", f"missing the value of `{t.last.text}`: found `{t.found}`", hint=hint, names=(t.last.text,))


def _quoted_word(t: Trouble) -> Fix | None:
    """``emit grads as "mpi-c";``: a word in quotes."""
    match = re.compile(r"[\"']([A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*)[\"']").match(t.text, t.position)
    if match is None or not t.expected & {"NAME", "WORD"} or t.expected & {"NUMBER", "SEMI", "STRING"}:
        return None
    terminal = "WORD" if "WORD" in t.expected else "NAME"
    sign = match[1] if terminal == "WORD" else match[1].replace("-", "_")
    message, hint = f"found the string `{match.group()}`, needed a name", f"write `{sign}`"
    return here(t, "C0105", message, hint=hint, insert=terminal, sign=sign, skip=len(match.group()))


def _unquoted_file(t: Trouble) -> Fix | None:
    """``include site.coll;``, ``import node.xml as node;``."""
    if t.last is None or t.last.type not in ("INCLUDE", "IMPORT"):
        return None
    match = re.compile(r"[<(]?[ \t]*\"?([\w./-]+)\"?[ \t]*[>)]?").match(t.text, t.position)
    if match is None:
        return None
    needed = "needed a file name in quotes" + (" alone" if match.group().startswith("(") else "")
    rest = ";" if t.last.type == "INCLUDE" else ""
    found = match.group().rstrip()
    message, hint = f"found `{found}`, {needed}", f'write `{t.last.text} "{match[1]}"{rest}`'
    return Fix(
        "C0110", message, t.position, t.position + len(found), hint=hint, insert="STRING", sign=f'"{match[1]}"',
        skip=len(match.group()),
    )  # fmt: skip


def _import_without_name(t: Trouble) -> Fix | None:
    """``import "node.xml";``."""
    if "AS" not in t.expected or t.found not in (";", "with", "{") or t.last is None or t.last.type != "STRING":
        return None
    if not re.search(r"(?:\A|[;}\n])\s*import\s*\Z", t.text[max(t.last.start - 200, 0) : t.last.start]):
        return None
    other = f"include {t.last.text};" if t.last.text.endswith('.coll"') else f"import {t.last.text} as NAME;"
    message = f"missing `as`: found `{t.found}`"
    return Fix("C0111", message, t.after, t.after + 1, hint=f"write `{other}`")


def _include_as(t: Trouble) -> Fix | None:
    """``include "x.coll" as t;``."""
    if t.found != "as" or t.last is None or t.last.type != "STRING" or not re.search(r"include\s*\S+\s*\Z", before(t)):
        return None
    match = re.compile(r"as\s+\w+").match(t.text, t.position)
    skip = len(match.group()) if match else len(t.found)
    hint = "an included file's names are used as they are; write `include FILE;`"
    return here(t, "C0109", "found `as`, needed `;`", hint=hint, skip=skip)


_FOREIGN_LINKS = {  # the missing word -> words and signs that people write in its place
    "ON": ("over", "across", "in", "at", "for", "@", "with", ":", ",", "->"),
    "USING": ("with", "by", "via", "as", "=", "on", ":", ",", "use", "uses"),
    "AS": ("to", "for", "using", "with", "into", "->", "=>", "=", ":", ","),
    "IN": ("=", "of", "from", ":", "<-", ":="),
    "OF": ("/",), "TO": ("->", "into", "=>", ","), "FROM": (":",),
}  # fmt: skip
_WHOLE = {
    "ON": "collective NAME = KIND on TOPOLOGY", "USING": "schedule NAME using SCHEDULER", "AS": "emit NAME as TARGET",
    "IN": "for NAME in LOW..HIGH", "OF": "send shard SHARD part PART of PARTS from RANK to RANK",
}  # fmt: skip


def whole_form(t: Trouble, terminal: str) -> str:
    """Return the form of the declaration or statement that lacks a word."""
    if terminal == "ON" and re.search(r"\bcluster\b[^;{}]*\Z", before(t)):
        return "cluster NAME = MACHINE on FABRIC"
    if terminal == "AS" and re.search(r"\bimport\b[^;{}]*\Z", before(t)):
        return 'import "FILE" as NAME'
    return _WHOLE.get(terminal, "send shard SHARD from RANK to RANK")


def _other_link_word(t: Trouble) -> Fix | None:
    """``collective g = allreduce over pod;``: another word or sign in place of ``on``, ``using``, ``as``, .."""
    for terminal, words in _FOREIGN_LINKS.items():
        if terminal not in t.expected or t.found not in words:
            continue
        if re.compile(r"\s*[;{]").match(t.text, t.position + len(t.found)):
            return None  # the word itself may be the name
        form = whole_form(t, terminal)
        message = f"found `{t.found}`, needed `{terminal.lower()}`"
        return here(
            t, "C0111", message, hint=f"write `{form}`", insert=terminal, sign=terminal.lower(), skip=len(t.found)
        )
    return None


def _noun_before_number(t: Trouble) -> Fix | None:
    """``root: rank 0``, ``from rank 0``, ``shard[0]``."""
    if t.found == "[" and t.last is not None and t.last.type == "SHARD":
        hint = f"write `shard {bracketed(t.text, t.position)}`"
        return here(t, "C0109", "found `[`, needed the number of a shard", hint=hint)
    if t.last is not None and t.last.type == "NAME" and t.last.text == "link" and called(t) is None:
        return _link_in_a_set(t)
    nouns = ("rank", "gpu", "node", "shard", "step", "number")
    if t.last is None or t.last.type != "NAME" or t.last.text not in nouns or not t.found[:1].isdigit():
        return None
    message = f"found `{t.last.text} {t.found}`, needed the number alone"
    return Fix(
        "C0109", message, t.last.start, t.position + len(t.found), hint=f"write `{t.found}`", names=(t.last.text,)
    )


def _link_in_a_set(t: Trouble) -> Fix | None:
    """``without(pod, {link 0 <-> 1})``."""
    if t.opener is None or t.opener.type != "LBRACE" or not re.search(r"\([^;]*\{[^;{}]*\Z", before(t)):
        return None
    rest = re.compile(r"[^,}\n]*").match(t.text, t.position)
    link = rest.group().strip() if rest else "0 <-> 1"
    message = "found `link` in a set, needed the link alone"
    return Fix("C0109", message, t.last.start if t.last else t.position, t.position, hint=f"write `{link}`",
               names=("link",))  # fmt: skip


def _root_after(t: Trouble) -> Fix | None:
    """``collective g = broadcast on pod from 0;``."""
    if t.found not in ("from", "root", "to", "size", "of", "with") or not {"SEMI", "LBRACE"} <= t.expected:
        return None
    if not re.search(r"\bcollective\b[^;{}]*\bon\b[^;{}]*\Z", before(t)):
        return None
    value = re.compile(r"\w+\s*[:=]?\s*([^;{}\n]*)").match(t.text, t.position)
    name = "size" if t.found in ("size", "of", "with") else "root"
    hint = f"options stand in braces: `{{ {name}: {value[1].strip() if value and value[1].strip() else '0'} }}`"
    return here(t, "C0101", f"found `{t.found}`, needed `;` or `{{`", hint=hint)


def _missing_using(t: Trouble) -> Fix | None:
    """``schedule g { .. }``."""
    if "USING" not in t.expected or t.found not in ("{", ";") or t.last is None:
        return None
    steps = t.found == "{" and re.compile(r"\{\s*(at|for|if|let|send)\b").match(t.text, t.position)
    form = f"schedule {t.last.text} using steps {{ .. }}" if steps else "schedule NAME using SCHEDULER;"
    return here(t, "C0111", f"missing `using`: found `{t.found}`", hint=f"write `{form}`")


def _using_without_name(t: Trouble) -> Fix | None:
    """``schedule using bfb;``."""
    if "USING" not in t.expected or t.last is None or t.last.text != "using" or t.last.type != "NAME":
        return None
    word = re.compile(r"[\w-]+").match(t.text, t.position)
    hint = f"write `schedule NAME using {word.group() if word else 'SCHEDULER'};`, where NAME is a collective"
    message = "missing the name of the collective before `using`"
    return Fix("C0111", message, t.last.start, t.last.end, hint=hint)


def _missing_equals(t: Trouble) -> Fix | None:
    """``topology t torus(4, 4);``, ``topology t is torus(4, 4);``, ``collective allreduce on pod;``."""
    if "EQUAL" not in t.expected or t.last is None or t.last.type != "NAME":
        return None
    if t.found == "on" and t.last.text in PREDEFINED:
        hint = f"name it: `collective grads = {t.last.text} on ..`"
        return here(t, "C0111", f"missing the name of the collective: found `{t.last.text}`", hint=hint)
    if t.found in ("is", "be", "as", "equals"):
        return here(t, "C0107", f"found `{t.found}`, needed `=`", insert="EQUAL", sign="=", skip=len(t.found))
    if t.found in FAMILIES or t.found in OPERATORS or t.found in PREDEFINED:
        return Fix("C0107", f"missing `=`: found `{t.found}`", t.after, t.after + 1, insert="EQUAL", sign="=")
    return None


def _operation_before_on(t: Trouble) -> Fix | None:
    """``collective g = allreduce sum on pod;``."""
    match = re.compile(r"([A-Za-z_]\w*)\s+on\b").match(t.text, t.position)
    if "ON" not in t.expected or match is None or t.last is None or t.last.type != "WORD":
        return None
    hint = f"options stand in braces at the end: `{{ op: {match[1]} }}`"
    return here(t, "C0111", f"found `{t.found}`, needed `on`", hint=hint, skip=len(t.found))


def _angle_brackets(t: Trouble) -> Fix | None:
    """``torus<4, 4>``."""
    match = re.search(r"([A-Za-z_]\w*)\s*<\s*([^<>;{}]*)\Z", before(t))
    if t.found not in (",", ">", ";") or match is None or match[1] not in FAMILIES:
        return None
    rest = re.compile(r"[^>;{}]*").match(t.text, t.position)
    inner = (match[2] + (rest.group() if rest else "")).strip()
    start = t.position - len(match.group()) + len(match[1])
    return Fix("C0109", "found `<`, needed `(`", start, start + 1, hint=f"write `{match[1]}({inner})`")


def _semicolon_between_arguments(t: Trouble) -> Fix | None:
    """``torus(4; 4)``."""
    if t.found != ";" or called(t) is None or "COMMA" not in t.expected:
        return None
    if not re.compile(r";[^;\n{}]*\)").match(t.text, t.position):
        return None
    return here(t, "C0107", "found `;`, needed `,`", hint="arguments are separated by `,`", insert="COMMA", skip=1)


def _empty_argument(t: Trouble) -> Fix | None:
    """``torus(4, , 4)``."""
    if t.found != "," or called(t) is None or "NUMBER" not in t.expected:
        return None
    return here(t, "C0101", "found `,`, needed an expression", hint="remove the comma, or write the argument", skip=1)


def _method(t: Trouble) -> Fix | None:
    """``torus(4, 4).with(..)``."""
    if t.found != "." or t.last is None or t.last.type != "RPAR":
        return None
    word = re.compile(r"\.\s*(\w+)").match(t.text, t.position)
    hint = "bandwidth and latency follow as `with { bandwidth: 25 Gbps, latency: 1 us }`"
    operator = re.compile(r"\.\s*(without|subset|degraded|relabel)\s*\(").match(t.text, t.position)
    whole = re.search(r"\btopology\s+\w+\s*=\s*([^;]*)\Z", before(t))
    if operator and whole:
        inner = bracketed(t.text, operator.end() - 1)
        hint = f"write `{operator[1]}({whole[1].strip()}, {inner})`"
        return Fix("C0109", f"found `{word.group() if word else '.'}`", t.position, operator.end() - 1, hint=hint)
    hint = hint if word and word[1].startswith(("with", "set", "band", "lat")) else "a topology has no fields"
    return Fix("C0109", f"found `{word.group() if word else '.'}`", t.position, word.end() if word else t.position + 1,
               hint=hint)  # fmt: skip


def _braces_after_colon(t: Trouble) -> Fix | None:
    """``at 0: { .. }`` and ``send-reduce``."""
    if t.found == "{" and t.last is not None and t.last.type == "COLON" and "SEND" in t.expected:
        hint = "write `at STEP { .. }`, without `:`"
        return Fix("C0107", "found `:` before `{`", t.last.start, t.last.end, hint=hint)
    if t.found == "-" and t.last is not None and t.last.type in ("SEND", "REDUCE"):
        word = re.compile(r"-[\w-]*").match(t.text, t.position)
        whole = t.last.text + (word.group() if word else "-")
        hint = "`send` copies, `reduce` sends and adds at the target"
        return Fix("C0106", f"unknown statement `{whole}`", t.last.start, word.end() if word else t.position + 1,
                   hint=hint)  # fmt: skip
    return None


def _body_as_value(t: Trouble) -> Fix | None:
    """``topology t = { rank gpu[4]; .. };``: the body was taken for a set."""
    if (
        t.opener is None
        or t.opener.type != "LBRACE"
        or t.last is None
        or t.last.text not in ("rank", "switch", "param")
    ):
        return None
    head = re.search(r"\btopology\s+(\w+)\s*(=)\s*\Z", t.text[max(t.opener.start - 80, 0) : t.opener.start])
    if head is None or t.last.type != "NAME":
        return None
    start = max(t.opener.start - 80, 0) + head.start(2)
    hint = f"write `topology {head[1]} {{ .. }}`"
    return Fix("C0107", "found `=` before a body", start, start + 1, hint=hint, names=(head[1],),
               drop_from=closing_offset(t.text, t.opener.start))  # fmt: skip


def _parameters_in_parentheses(t: Trouble) -> Fix | None:
    """``topology net(n) { .. }``."""
    if t.found != "(" or t.last is None or t.last.type != "NAME" or not {"EQUAL", "LBRACE"} <= t.expected:
        return None
    inner, end = bracketed(t.text, t.position), closing_offset(t.text, t.position)
    params = " ".join(f"param {name} = 4;" for name in re.findall(r"[A-Za-z_]\w*", inner)[:2])
    form = f"topology {t.last.text} {{ {params + ' ' if params else ''}.. }}"
    hint = f"write `{form}`" + ("; `-D` sets its parameters" if params else "")
    return Fix("C0109", "found parameters in `( )`", t.position, end, hint=hint, names=(t.last.text,))


def _keyword_in_list(t: Trouble) -> Fix | None:
    """``rank gpu[4], switch s;``."""
    if t.last is None or t.last.type != "NAME" or t.last.text not in KEYWORDS or not re.match(r"[A-Za-z_]", t.found):
        return None
    if not re.search(r"\b(rank|switch)\b[^;{}]*,\s*\w+\s*\Z", before(t)) or "LSQB" not in t.expected:
        return None
    message, hint = f"found `{t.last.text}` in another declaration", f"put `;` before `{t.last.text}`"
    return Fix("C0112", message, t.last.start, t.last.end, hint=hint, names=(t.found,))


def _after_a_link(t: Trouble) -> Fix | None:
    """``link a -> b : 25 GB/s; 3 us;``."""
    if t.last is None or t.last.type != "SEMI" or not t.found[:1].isdigit() or "LINK" not in t.expected:
        return None
    if not re.search(r"\blink\b[^;{}]*:[^;{}]*;\s*\Z", before(t)):
        return None
    hint = "bandwidth and latency are separated by `,`"
    return here(t, "C0107", f"found `;` before `{t.found}`, needed `,`", hint=hint)


def _unopened_bracket(t: Trouble) -> Fix | None:
    """``link gpu0] -> gpu[1];``."""
    if t.found != "]" or t.last is None or (t.opener is not None and t.opener.type == "LSQB"):
        return None
    match = re.fullmatch(r"([A-Za-z_]+)_?(\d+)", t.last.text)
    hint = f"write `{match[1]}[{match[2]}]`" if match else "write `[` before the indices"
    return here(t, "C0104", "found `]` without its opening bracket", hint=hint)


def _assigned_again(t: Trouble) -> Fix | None:
    """``param n += 1;``, and ``n = 5;`` after ``param n = 4;``."""
    if t.last is not None and t.last.type == "NAME" and "EQUAL" in t.expected and t.found in ("+", "-", "*", "/"):
        if not t.text.startswith("=", t.position + 1):
            return None
        hint = "a name has one value; use another name for the new one"
        return here(t, "C0109", f"found `{t.found}=`, needed `=`", hint=hint, names=(t.last.text,))
    if not t.expected & {"TOPOLOGY", "LET"} or assigned(t) is None:
        return None
    if re.search(rf"\b(?:param|let|topology|collective)\s+{re.escape(t.found)}\b", t.text[: t.position]) is None:
        return None
    hint = f"change the declaration of `{t.found}`, or use another name"
    return here(t, "C0109", f"`{t.found}` has a value already, which cannot change", hint=hint)


#: each with an example; the first that recognizes the mistake answers
ROWS = (
    Slip("param n = 4;\nn = 5;", _assigned_again),
    Slip("collective g = broadcast on pod { root: rank 0 };", _noun_before_number),
    Slip("collective g = broadcast on pod from 0;", _root_after),
    Slip("schedule g { at 0: send shard 0 from 0 to 1; }", _missing_using),
    Slip("schedule using bfb;", _using_without_name),
    Slip("topology t torus(4, 4);", _missing_equals),
    Slip("collective g = allreduce sum on pod;", _operation_before_on),
    Slip("topology t = torus<4, 4>;", _angle_brackets),
    Slip("topology t = torus(4; 4);", _semicolon_between_arguments),
    Slip("topology t = torus(4, , 4);", _empty_argument),
    Slip("topology t = torus(4, 4).with(3);", _method),
    Slip("schedule g using steps { at 0: { } }", _braces_after_colon),
    Slip("topology t = { rank gpu[4]; };", _body_as_value),
    Slip("topology net(n) { rank a[n]; }", _parameters_in_parentheses),
    Slip("topology t { rank gpu[4], switch s; }", _keyword_in_list),
    Slip("topology t { link a -> b : 25 GB/s; 3 us; }", _after_a_link),
    Slip("topology t { link gpu0] -> gpu[1]; }", _unopened_bracket),
    Slip("param int n = 4;", _typed),
    Slip("param n;", _no_value),
    Slip('emit grads as "mpi-c";', _quoted_word),
    Slip("include site.coll;", _unquoted_file),
    Slip('import "node.xml";', _import_without_name),
    Slip('include "site.coll" as site;', _include_as),
    Slip("collective g = allreduce over pod;", _other_link_word),
)
