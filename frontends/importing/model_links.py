"""The links that GPUs of a model have in the machines it is sold in, for files that list none."""

from __future__ import annotations

from fractions import Fraction

from collc.ir.frozen import frozen

from .figures import Gpu, bandwidth_text

__all__ = ["NO_LINKS", "NO_LINKS_HINT", "ModelLinks", "links_of_model"]

#: models whose GPUs are all joined by NVSwitches
_SWITCHED = ("a100", "a800", "h100", "h800", "h20", "h200", "b200", "b300", "gb200")

NO_LINKS = "no NVLink or xGMI between GPUs"
NO_LINKS_HINT = "`--gpu h100` adds the links of a model whose GPUs are all joined by NVSwitches, or all to all by xGMI"


@frozen
class ModelLinks:
    """The bandwidth of each GPU to the NVSwitches, or of each pair of GPUs, in bytes per second; the other is 0.

    ``what`` describes the links, for a message.
    """

    switched: Fraction
    pair: Fraction
    what: str


def links_of_model(model: Gpu | None, gpus: int) -> ModelLinks | None:
    """Return the links between ``gpus`` GPUs of a model; None if the model does not determine them."""
    if model is None or gpus < 2:
        return None
    rate = bandwidth_text(model.link)
    if model.name in _SWITCHED and model.links:
        what = f"{model.links} NVLinks of {rate} from each GPU to NVSwitches"
        return ModelLinks(model.links * model.link, Fraction(0), what)
    count = model.links // (gpus - 1) if model.name.startswith("mi") else 0
    return (
        ModelLinks(Fraction(0), count * model.link, f"{count} xGMI links of {rate} between any two GPUs")
        if count
        else None
    )
