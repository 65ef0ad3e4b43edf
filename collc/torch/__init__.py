"""Compiled schedules under ``torch.distributed``: the backend ``collc`` for tensors of the CPU.

    import collc.torch
    collc.torch.configure("cluster.coll")
    torch.distributed.init_process_group("collc")

Importing this registers the backend. Needs torch (``pip install "collc[torch]"``); without it the import succeeds, and
what needs torch is not there.
"""

from __future__ import annotations

from importlib.util import find_spec

from .settings import configure

__all__ = ["configure", "register", "replace"]


def register() -> None:
    """Make ``collc`` a backend of torch.distributed; importing this package has done it where torch was there."""
    from . import registering

    registering.register()


def replace() -> None:
    """Give programs this backend where they ask for the one that ``COLLC_TORCH_REPLACE`` names."""
    from . import registering

    registering.replace()


if find_spec("torch") is not None:
    register()
