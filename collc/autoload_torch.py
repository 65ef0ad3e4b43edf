"""Called by ``import torch`` (entry point group ``torch.backends``); it does nothing unless ``COLLC_SPEC`` is set.

It is separate from :mod:`collc.torch`, so that other programs do not import that package.
"""

from __future__ import annotations

import os

__all__ = ["start"]


def start() -> None:
    """Register the backend if the environment names a specification. Never raises: torch would not load."""
    if not os.environ.get("COLLC_SPEC"):
        return
    try:
        from . import torch as backend

        backend.replace()
    except Exception as problem:
        import warnings

        warnings.warn(f"the backend `collc` is not available: {problem}", RuntimeWarning, stacklevel=2)
