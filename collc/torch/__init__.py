"""Compiled schedules under ``torch.distributed``: the backend ``collc`` for tensors of the CPU.

    import collc.torch
    collc.torch.configure("cluster.coll")
    torch.distributed.init_process_group("collc")

Importing this registers the backend. Needs torch (``pip install "collc[torch]"``); without it the import succeeds, but
the parts that need torch are missing.
"""

from __future__ import annotations

from importlib.util import find_spec

from .settings import configure

__all__ = ["configure", "register", "replace"]


def register() -> None:
    """Make ``collc`` a backend of torch.distributed; importing this package does it if torch is installed."""
    from . import registering

    registering.register()


def replace() -> None:
    """Give programs this backend if they request the one that ``COLLC_TORCH_REPLACE`` names."""
    from . import registering

    registering.replace()


if find_spec("torch") is not None:
    register()
