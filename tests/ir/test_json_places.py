"""Keys that stand twice in an object of a JSON text, against the pairs that Python's own reader gives."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sampling import examples

from collc.ir.diagnostic import Source
from collc.ir.json_places import repeated_key

KEYS = st.sampled_from(["a", "b", 'q"', "{", "}:", "[,", "\\", "é"])
VALUES = st.recursive(
    KEYS | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(KEYS, inner), max_size=3).map(tuple),
    max_leaves=12,
)


def text_of(value: object) -> str:
    """Return JSON; a tuple is the pairs of an object, which may repeat keys."""
    if isinstance(value, tuple):
        return "{ " + ", ".join(f"{json.dumps(key)} : {text_of(one)}" for key, one in value) + "}"
    if isinstance(value, list):
        return "[" + ",\n".join(map(text_of, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@settings(max_examples=examples(200), deadline=None)
@given(VALUES)
@example((("a", (("b", 1),)), ("b", 2)))
@example((("a", (("a", 1),)), ("c", [(("c", 1), ("c", 2))])))
@example([(("a", "a"),), "a", (("a", 1),)])
def test_a_repeated_key_is_found_where_it_stands(value: object) -> None:
    text = text_of(value)
    repeats: list[bool] = []

    def pairs(found: list[tuple[str, object]]) -> None:
        repeats.append(len({key for key, _ in found}) < len(found))

    json.loads(text, object_pairs_hook=pairs)
    found = repeated_key(Source("x", text))
    assert (found is not None) == any(repeats)
    if found is not None:
        key, first, again = found
        lines = text.split("\n")
        for place in (first, again):
            assert json.loads(lines[place.line - 1][place.column - 1 : place.end_column - 1]) == key
        assert (first.line, first.column) < (again.line, again.column)
