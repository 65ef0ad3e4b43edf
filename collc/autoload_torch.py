"""What ``import torch`` calls (entry point group ``torch.backends``): nothing, unless ``COLLC_SPEC`` is set.

Apart from :mod:`collc.torch`, so that those who have both installed and want neither pay for nothing.
"""

from __future__ import annotations

import os

__all__ = ["start"]


def start() -> None:
    """Register the backend where the environment names a specification. Never raises: torch would not load."""
    if not os.environ.get("COLLC_SPEC"):
        return
    try:
        from . import torch as backend

        backend.replace()
    except Exception as problem:
        import warnings

        warnings.warn(f"the backend `collc` is not available: {problem}", RuntimeWarning, stacklevel=2)
