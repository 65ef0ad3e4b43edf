"""Plan -> the shell script that builds it, for root in new namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from .plan import Plan

__all__ = ["BURST", "CONTROL_HOST", "build_script", "limit_script"]

#: address of the launcher's side of the control bridge
CONTROL_HOST = "10.99.255.254"
_MTU = 9000
#: bytes that an idle wire may send at once; a packet must fit
BURST = 10000
_QUEUE = 4 << 20
#: routes of what a node itself sends
_OWN_TABLE = 100

#: settings of every node; the script skips those that the kernel lacks
_SETTINGS = (
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    # Steps have pauses between them, and a connection must not start slowly after each.
    ("net/ipv4/tcp_slow_start_after_idle", "0"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    # The queues below never drop, so probing is useless; BBR would probe, and drain its window every ten seconds.
    ("net/ipv4/tcp_congestion_control", "reno"),
)


def build_script(plan: Plan) -> str:
    """Return the script that creates the namespaces and, unless links have a delay, their wires.

    It ends with the line ``built`` on standard output.
    """
    lines = ["set -e", "mount -t tmpfs none /run", "mkdir /run/netns", "ip link set lo up"]
    lines += [f"ip netns add {plan.namespace(node)}" for node in range(plan.num_nodes)]
    lines += _batch("ip", _outer(plan))
    for node in range(plan.num_nodes):
        lines += [f"nsenter --net=/run/netns/{plan.namespace(node)} sh -e <<'NODE'"]
        lines += [f"echo {value} > /proc/sys/{name} 2>/dev/null || true" for name, value in _SETTINGS]
        lines += _batch("ip", _inner(plan, node))
        if not plan.delay:
            lines += _batch("tc", _limits(plan, node)) + _batch("ip", _routes(plan, node))
        lines += ["NODE"]
    return "\n".join([*lines, "echo built"]) + "\n"


def limit_script(plan: Plan) -> str:
    """Return the script that gives addresses and routes to wires that are TUN devices, once those exist."""
    lines = ["set -e"]
    for node in range(plan.num_nodes):
        lines += [f"nsenter --net=/run/netns/{plan.namespace(node)} sh -e <<'NODE'"]
        ups = (f"link set to{wire.other(node)} mtu {_MTU} txqueuelen 10000 up" for wire in plan.wires_of[node])
        lines += _batch("ip", ups) + _batch("ip", _routes(plan, node)) + ["NODE"]
    return "\n".join(lines) + "\n"


def _batch(program: str, commands: Iterator[str]) -> list[str]:
    return [f"{program} -batch - <<'BATCH'", *commands, "BATCH"]


def _outer(plan: Plan) -> Iterator[str]:
    """Make the control bridge, and all pairs of devices."""
    yield "link add control type bridge"
    yield "link set control up"
    yield f"address add {CONTROL_HOST}/16 dev control"
    for rank in range(plan.num_ranks):
        yield f"link add c{rank} type veth peer name control netns {plan.namespace(rank)}"
        yield f"link set c{rank} master control up"
    for wire in () if plan.delay else plan.wires:
        a, b = plan.namespace(wire.a), plan.namespace(wire.b)
        ends = [
            f"to{y} mtu {_MTU} address {plan.hardware_address(x, y)} netns {plan.namespace(x)}"
            for x, y in ((wire.a, wire.b), (wire.b, wire.a))
        ]
        assert a != b
        yield f"link add {ends[0]} type veth peer name {ends[1]}"


def _inner(plan: Plan, node: int) -> Iterator[str]:
    """Give a node its address, on a bridge without ports: it belongs to no wire, so that all can be used."""
    yield "link set lo up"
    yield "link add rid0 type bridge"
    yield "link set rid0 up"
    yield f"address add {plan.address(node)}/32 dev rid0"
    if node < plan.num_ranks:
        yield "link set control up"
        yield f"address add {plan.control_address(node)}/16 dev control"
    for wire in () if plan.delay else plan.wires_of[node]:
        yield f"link set to{wire.other(node)} gso_max_size {_MTU} up"


def _limits(plan: Plan, node: int) -> Iterator[str]:
    for wire in plan.wires_of[node]:
        rate = bits(wire.rate(node))
        yield f"qdisc add dev to{wire.other(node)} root tbf rate {rate}bit burst {BURST} limit {_QUEUE}"


def bits(rate: Fraction) -> int:
    """Return whole bits per second for tc."""
    return round(rate * 8)


def _routes(plan: Plan, node: int) -> Iterator[str]:
    """Route to every node over the wire toward it. Neighbors' hardware addresses are fixed, without queries."""
    own = plan.address(node)
    for wire in plan.wires_of[node]:
        peer = wire.other(node)
        if not plan.delay:
            known = plan.hardware_address(peer, node)
            yield f"neighbour add {plan.address(peer)} lladdr {known} dev to{peer} nud permanent"
    backward = [
        wire.other(node) for wire in plan.wires_of[node] if int(plan.toward[node, wire.other(node)]) != wire.other(node)
    ]
    if backward:  # forwarded packets in this direction use links
        yield f"rule add iif lo lookup {_OWN_TABLE} priority {_OWN_TABLE}"
    for peer in backward:
        yield f"route add {plan.address(peer)}/32 dev to{peer} src {own} table {_OWN_TABLE}"
    for target in range(plan.num_nodes):
        hop = int(plan.toward[node, target])
        if hop < 0:
            continue
        via = "" if plan.delay or hop == target else f"via {plan.address(hop)} "
        onlink = " onlink" if via else ""
        yield f"route add {plan.address(target)}/32 {via}dev to{hop} src {own}{onlink}"
