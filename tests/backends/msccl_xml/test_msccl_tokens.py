"""What the runtimes' tokeniser gets through, against a second model of it that goes character by character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_files import TokenError, nodes, xml
from sampling import examples

from collc.backends.msccl_xml import read, verify_text
from collc.backends.msccl_xml.tokens import check_tokens
from collc.ir.diagnostic import CollcError

# ---- the tokeniser's model


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_token_check_agrees_with_the_model(data: st.DataObject) -> None:
    """One character changed anywhere: what still is XML passes the check exactly if the model gets through."""
    text = xml("allreduce", 2, [[(1, 1, 0, ["s i0 o0 1", "r i0 o0 1 !"])], [(0, 0, 0, ["s i0 o0 1"])]], (2, 2, 0))
    text = f"<!-- about it -->\n{text}"
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(
        st.sampled_from(["", " ", "\t", "\n", "\r", "'", '"', "=", "/", ">", "<!-- x -->", "<!--a=b -->", "x", " q"])
    )
    cut = data.draw(st.integers(0, 2))
    changed = text[:at] + put + text[at + cut :]
    try:
        read(changed)
    except CollcError:
        return
    try:
        list(nodes(changed))
        passes = True
    except TokenError:
        passes = False
    assert (check_tokens(changed) == []) == passes, changed


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("<algo", '<?xml version="1.0"?>\n<algo', "line 1: an XML declaration"),
        ("  <gpu", "\t<gpu", "line 2: a tab between elements"),
        (" proto=", "\n proto=", "line 1: a line break inside a tag"),
        (" proto=", "\tproto=", "line 1: a tab inside a tag"),
        ('"Simple"', "'Simple'", "values need double quotes"),
        ("<algo", "<!--size=1 --><algo", "not have `=` before its first space"),
        ('name="test"', f'name="{"x" * 300}"', "overruns a buffer"),
        ('name="test"', " ".join(f'a{k}="1"' for k in range(17)), "`proto` is number 18 of its element"),
        ("<algo", "<?go now?><algo", "a processing instruction"),
        ("<gpu", "<gpu\t", "a tab inside a tag"),
        ("</tb>", "</tb >", "a closing tag has only its name"),
        ('type="cpy"', 'type="&#99;py"', "do not expand"),
    ],
)
def test_what_stops_the_tokeniser_is_named(before: str, after: str, message: str) -> None:
    text = xml("allreduce", 1, [[(-1, -1, 0, ["cpy i0 o0 1"])]], (1, 1, 0), nchunksperloop=1)
    assert verify_text(text).ok
    report = verify_text(text.replace(before, after, 1))
    failed = {check.name: check.detail for check in report.failed}
    assert message in failed["tokens"]
