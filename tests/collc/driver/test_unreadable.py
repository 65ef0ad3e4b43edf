"""Files that are too large to be read back are refused, because nothing would prove them."""

from __future__ import annotations

import pytest

from collc.registry.classes import target_class

SPEC = "collective grads = allreduce on biring(6);\nschedule grads using bfb;\n"


@pytest.mark.parametrize("target", ["msccl-xml", "oneccl-xml", "mscclpp-json"])
def test_a_file_that_cannot_be_read_back_is_refused(collc, monkeypatch, tmp_path, target: str) -> None:  # type: ignore[no-untyped-def]
    source, out = tmp_path / "ring.coll", tmp_path / f"ring-{target}"
    source.write_text(SPEC)
    words = ("compile", str(source), "-t", target, "-o", f"{out}/")
    assert collc(*words).status == 0
    size = max(len(file.read_text()) for file in out.iterdir())
    for most, status in ((size, 0), (size - 1, 3)):
        monkeypatch.setattr(target_class(target), "most_read", most)
        found = collc(*words)
        assert found.status == status, found.err
        assert ("C0065" in found.err) == bool(status)
    assert "mpi-c" in found.err and "ring.coll" in found.err
    assert collc(*words, "--verify", "off").status == 0
