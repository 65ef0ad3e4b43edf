"""A file to be written has one text, given as text or as bytes."""

from __future__ import annotations

import pickle

import attrs
import pytest

from collc.backends.base import Artifact
from collc.files.texts import Output


@pytest.mark.parametrize("text", ["", "<algo/>\n", "# größer\n", "name\udcff"])
def test_text_and_bytes_of_a_file_are_the_same(text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    one, other = Artifact("a.xml", text, "msccl-xml"), Artifact("a.xml", data, "msccl-xml")
    assert one == other and hash(one) == hash(other)
    for artifact in (one, other, pickle.loads(pickle.dumps(one))):
        assert artifact.text == text and artifact.data == data
        assert isinstance(artifact.content, bytes) == text.isascii()
        assert Output("a.xml", artifact.content).data == data
        assert f"{len(text)} character" in repr(artifact)
    assert attrs.evolve(one, text=text + "x") != one
    assert Artifact(filename="a.xml", text=text, target="msccl-xml") == one
