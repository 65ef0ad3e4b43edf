"""Write the workloads that come with collc from published hyperparameters.

    python benchmarks/workloads.py collc/training/models

Sizes follow from the hyperparameters. Compute times are floating-point operations over an assumed rate: the peak of an
A100 in bfloat16 times an assumed utilization. The backward pass takes twice as long as the forward pass.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import attrs

__all__ = ["WORKLOADS", "texts"]

#: operations per second of an A100 in bfloat16, dense (NVIDIA's data sheet)
PEAK = 312 * 10**12
#: bytes of an element of a gradient or of an activation: bfloat16
ELEMENT = 2

Json = dict[str, object]


@attrs.frozen
class Dense:
    """A decoder: ``gated`` feed-forward layers have three matrices. ``tied``: embedding and output are one matrix."""

    layers: int
    model: int
    inner: int
    heads: int
    kv_heads: int
    vocabulary: int
    length: int
    gated: bool
    tied: bool
    positions: int = 0

    @property
    def attention(self) -> int:
        """Parameters of an attention layer."""
        head = self.model // self.heads
        return 2 * self.model**2 + 2 * self.model * head * self.kv_heads

    @property
    def feed_forward(self) -> int:
        """Parameters of a feed-forward layer."""
        return (3 if self.gated else 2) * self.model * self.inner

    @property
    def parameters(self) -> int:
        """Parameters in matrices, without biases and norms."""
        table = self.vocabulary * self.model
        blocks = self.layers * (self.attention + self.feed_forward)
        return blocks + table * (1 if self.tied else 2) + self.positions * self.model

    def entries(self, rate: Fraction, sequences: int) -> list[Json]:
        """Return the layers, with the times of ``sequences`` sequences at ``rate`` operations per second."""
        tokens, table = self.length * sequences, self.vocabulary * self.model
        scores = 4 * self.length * self.model
        output = _layer("output", 0 if self.tied else table, 2 * table * tokens, rate)
        return [
            _layer("embedding", table + self.positions * self.model, 0, rate),
            {"repeat": self.layers, "layers": [
                _layer("attention", self.attention, (2 * self.attention + scores) * tokens, rate),
                _layer("feed-forward", self.feed_forward, 2 * self.feed_forward * tokens, rate),
            ]},
            output,
        ]  # fmt: skip


@attrs.frozen
class Switch:
    """A Switch Transformer: as many encoder as decoder layers; every ``sparse``-th feed-forward layer has experts."""

    layers: int
    model: int
    inner: int
    heads: int
    head: int
    vocabulary: int
    experts: int
    sparse: int
    length: int

    @property
    def attention(self) -> int:
        """Parameters of an attention layer; a decoder layer has two."""
        return 4 * self.model * self.heads * self.head

    @property
    def expert(self) -> int:
        """Parameters of an expert, or of a dense feed-forward layer."""
        return 2 * self.model * self.inner

    @property
    def parameters(self) -> int:
        """Parameters in matrices, without norms and biases."""
        sparse = 2 * self.layers // self.sparse
        router = sparse * self.model * self.experts
        feed_forward = (sparse * self.experts + 2 * self.layers - sparse) * self.expert
        return 3 * self.layers * self.attention + feed_forward + router + 2 * self.vocabulary * self.model

    def entries(self, rate: Fraction, sequences: int) -> list[Json]:
        """Return the layers; a rank has ``sequences`` sequences in the encoder, and as many tokens in the decoder."""
        tokens, table = self.length * sequences, self.vocabulary * self.model
        return [
            _layer("embedding", table, 0, rate),
            {"repeat": self.layers // self.sparse, "layers": self._half(1, tokens, rate)},
            {"repeat": self.layers // self.sparse, "layers": self._half(2, tokens, rate)},
            _layer("output", table, 2 * table * tokens, rate),
        ]  # fmt: skip

    def _half(self, attentions: int, tokens: int, rate: Fraction) -> list[Json]:
        """Return the layers of the encoder (one attention a layer) or decoder (two) up to one with experts."""
        scores = 4 * self.length * self.heads * self.head
        weights = attentions * self.attention
        attention = _layer("attention", weights, (2 * weights + attentions * scores) * tokens, rate)
        dense = _layer("feed-forward", self.expert, 2 * self.expert * tokens, rate)
        router = self.model * self.experts
        experts = _layer("experts", 0, 2 * self.expert * tokens, rate)
        return [
            *([attention, dense] * (self.sparse - 1)), attention,
            _layer("router", router, 2 * router * tokens, rate),
            {**experts, "alltoall": ELEMENT * tokens * self.model},
        ]  # fmt: skip


def _layer(name: str, parameters: int, operations: int, rate: Fraction) -> Json:
    """Return a layer; times in nanoseconds, rounded."""
    forward = round(operations / rate * 10**9)
    found: Json = {"name": name, "gradient": ELEMENT * parameters}
    if forward:
        found |= {"forward": f"{forward} ns", "backward": f"{2 * forward} ns"}
    return found


@attrs.frozen
class Described:
    """A model, the number of ranks it holds for (None: any), the sequences of a rank, and the assumed utilization."""

    model: Dense | Switch
    summary: str
    source: str
    sequences: int
    utilization: Fraction
    ranks: int | None = None

    @property
    def assumed(self) -> str:
        """What the source does not give."""
        plural = "sequence" if self.sequences == 1 else "sequences"
        text = f"{self.sequences} {plural} of {self.model.length} tokens a rank; gradients in bfloat16; compute at "
        text += f"{self.utilization} of the 312 TFLOP/s of an A100, backward twice forward"
        return text + ("; activations in bfloat16, tokens uniform" if isinstance(self.model, Switch) else "")


_LLAMA = "The Llama 3 Herd of Models, arXiv 2407.21783, Table 3"
_SWITCH = "Switch Transformers, arXiv 2101.03961; checkpoint google/{}"
_T5X = "Switch Transformers, arXiv 2101.03961; T5X's configuration of Switch-C"

WORKLOADS: Mapping[str, Described] = {
    "gpt2-xl": Described(
        Dense(48, 1600, 6400, 25, 25, 50257, 1024, gated=False, tied=True, positions=1024),
        "GPT-2 XL, 1.5 billion parameters, data parallel",
        "Language Models are Unsupervised Multitask Learners, Table 2; checkpoint openai-community/gpt2-xl", 4,
        Fraction(2, 5),
    ),
    "llama3-8b": Described(
        Dense(32, 4096, 14336, 32, 8, 128256, 8192, gated=True, tied=False),
        "Llama 3 8B, data parallel", _LLAMA, 1, Fraction(2, 5),
    ),
    "llama3-70b": Described(
        Dense(80, 8192, 28672, 64, 8, 128256, 8192, gated=True, tied=False),
        "Llama 3 70B, data parallel", _LLAMA, 1, Fraction(2, 5),
    ),
    "switch-base-256": Described(
        Switch(12, 768, 3072, 12, 64, 32128, 256, 2, 512),
        "Switch Base with 256 experts, 14.7 billion parameters, on 256 ranks", _SWITCH.format("switch-base-256"), 8,
        Fraction(1, 5), 256,
    ),
    "switch-c-2048": Described(
        Switch(15, 2080, 6144, 30, 64, 32128, 2048, 1, 512),
        "Switch-C with 2,048 experts, 1.6 trillion parameters, on 1,024 ranks", _T5X, 2,
        Fraction(1, 5), 1024,
    ),
}  # fmt: skip


def texts() -> dict[str, str]:
    """Return the text of every file by name."""
    return {f"{name}.json": _text(name, one) for name, one in WORKLOADS.items()}


def _text(name: str, one: Described) -> str:
    head: Json = {"workload": name, "summary": one.summary, "source": one.source, "assumed": one.assumed}
    if one.ranks is not None:
        head["ranks"] = one.ranks
    head["layers"] = one.model.entries(PEAK * one.utilization, one.sequences)
    return json.dumps(head, indent=1) + "\n"


if __name__ == "__main__":
    for filename, text in texts().items():
        (Path(sys.argv[1]) / filename).write_text(text)
