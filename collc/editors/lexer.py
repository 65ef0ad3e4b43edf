"""The lexer of Pygments: ``pygmentize -l coll pod.coll``, code blocks of documentation. Pygments finds it itself."""

from __future__ import annotations

import re

from pygments.lexer import RegexLexer, bygroups
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from .rules import rules

__all__ = ["TOKENS", "CollLexer"]

#: kind of a rule -> token of Pygments
TOKENS = {
    "space": Whitespace, "comment": Comment.Single, "string": String.Double, "number": Number, "unit": Keyword.Type,
    "keyword": Keyword, "word-operator": Operator.Word, "operator": Operator, "punctuation": Punctuation,
    "constant": Keyword.Constant, "builtin": Name.Builtin, "function": Name.Function, "kind": Name.Class,
    "option": Name.Attribute, "name": Name,
}  # fmt: skip


class CollLexer(RegexLexer):
    """Tokens of ``.coll`` files."""

    name = "collc"
    url = "https://pypi.org/project/collc/"
    aliases = ("coll", "collc")
    filenames = ("*.coll",)
    mimetypes = ("text/x-coll",)
    flags = re.MULTILINE
    tokens = {  # noqa: RUF012  # Pygments reads it as a class attribute
        "root": [
            (r"\n", Whitespace),
            *((one.pattern, bygroups(*(TOKENS[kind] for kind in one.kinds))) for one in rules()),
        ]
    }
