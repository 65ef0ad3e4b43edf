"""Whether this machine can run a testbed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

__all__ = ["entering", "obstacle", "unsharing"]

#: programs that build the network, from util-linux and iproute2
_PROGRAMS = ("unshare", "nsenter", "mount", "ip", "tc")
_PROBE_SECONDS = 20.0

#: a small network with all elements of a real one
_PROBE = """set -e
mount -t tmpfs none /run; mkdir /run/netns
ip netns add other
ip link add left0 type veth peer name right0 netns other
ip link add bridge0 type bridge
ip link set left0 mtu 9000 gso_max_size 9000
tc qdisc add dev left0 root tbf rate 40mbit burst 16kb limit 4mb
"""


def unsharing() -> list[str]:
    """Return the command that runs another in new namespaces, which all end with it.

    Users other than root also get a user namespace in which they are root.
    """
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [
        "unshare", *user, "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
        "--propagation", "private",
    ]  # fmt: skip


def entering(pid: int) -> list[str]:
    """Return the command that runs another in the namespaces of process ``pid``, started by :func:`unsharing`."""
    user = [] if os.geteuid() == 0 else [f"--user=/proc/{pid}/ns/user", "--preserve-credentials"]
    own = f"/proc/{pid}/ns"
    return ["nsenter", *user, f"--mount={own}/mnt", f"--net={own}/net", f"--pid={own}/pid_for_children"]


@cache
def obstacle(delayed: bool = False) -> str | None:
    """Return why no testbed can be built here, or None, after a trial that leaves nothing behind.

    ``delayed``: links with a delay, which need TUN devices.
    """
    if not sys.platform.startswith("linux"):
        return f"network namespaces are Linux's, and this is {sys.platform}"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"programs are missing: {', '.join(missing)} (util-linux, iproute2)"
    if delayed and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "links with a delay need /dev/net/tun, which may not be opened here"
    try:
        done = subprocess.run(
            [*unsharing(), "sh", "-c", _PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as reason:
        return f"network namespaces cannot be tried: {reason}"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    user = "root" if os.geteuid() == 0 else "this user, without root,"
    return f"{user} may not build network namespaces here: {lines[0] if lines else f'status {done.returncode}'}"
