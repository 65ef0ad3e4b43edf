"""Nodes <-> bytes: a file begins with its metadata; each message has its length before it, as a varint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .schema import COMM_RECV, COMM_SEND, messages
from .trace import Node

__all__ = ["read", "written"]

_VERSION = "0.0.4"
#: attributes of a node with their fields, in order; ASTRA-sim's feeders read each of them by its name
_FIELDS = {
    "is_cpu_op": "bool_val", "comm_size": "int64_val", "comm_src": "int32_val", "comm_dst": "int32_val",
    "comm_tag": "int32_val",
}  # fmt: skip
_MOST_SHIFT = 28


def written(rank: int, nodes: Sequence[Node], about: Mapping[str, str]) -> bytes:
    """Return the file of a rank; ``about`` are attributes of its metadata."""
    classes = messages()
    head = classes["GlobalMetadata"](version=_VERSION)
    for name, value in about.items():
        head.attr.add(name=name, string_val=value)
    return b"".join(map(_framed, [head, *(_message(classes["Node"], rank, node) for node in nodes)]))


def _message(kind: Any, rank: int, node: Node) -> Any:  # Any: of protobuf
    message = kind(id=node.id, name=node.name, type=COMM_SEND if node.sends else COMM_RECV, data_deps=node.deps)
    ends = (rank, node.peer) if node.sends else (node.peer, rank)
    for (name, field), value in zip(_FIELDS.items(), (False, node.size, *ends, node.tag), strict=True):
        message.attr.add(name=name, **{field: value})
    return message


def _framed(message: Any) -> bytes:  # Any: of protobuf
    body: bytes = message.SerializeToString(deterministic=True)
    size, head = len(body), bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


def read(data: bytes, rank: int) -> tuple[Mapping[str, str], tuple[Node, ...]]:
    """Return the metadata and the nodes of the file of a rank; raise ValueError for bytes that are no such file."""
    from google.protobuf.message import DecodeError

    classes, bodies = messages(), list(_bodies(data))
    try:
        parsed = [
            classes["Node" if number else "GlobalMetadata"].FromString(body) for number, body in enumerate(bodies)
        ]
    except DecodeError as problem:
        raise ValueError(f"a message cannot be read: {problem}") from None
    if not parsed:
        raise ValueError("the file has no metadata")
    head = parsed[0]
    about = {one.name: one.string_val for one in head.attr}
    if head.version != _VERSION:
        raise ValueError(f"the version is `{head.version}`, needed {_VERSION}")
    return about, tuple(_node(one, rank) for one in parsed[1:])


def _bodies(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a file."""
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            if at >= len(data) or shift > _MOST_SHIFT:
                raise ValueError("a length is cut off, or longer than 32 bits")
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        if at + size > len(data):
            raise ValueError("a message is cut off")
        yield data[at : at + size]
        at += size


def _node(message: Any, rank: int) -> Node:  # Any: of protobuf
    """Return a node; raise ValueError unless it is a send or a receive of the rank with all attributes."""
    found = {}
    for one in message.attr:
        field = _FIELDS.get(one.name)
        if field is None or one.name in found or one.WhichOneof("value") != field:
            raise ValueError(f"node {message.id} has a wrong attribute `{one.name}`")
        found[one.name] = getattr(one, field)
    if list(found) != list(_FIELDS) or message.type not in (COMM_SEND, COMM_RECV) or message.ctrl_deps:
        raise ValueError(f"node {message.id} is no send and no receive with its attributes")
    sends = message.type == COMM_SEND
    own, peer = (found["comm_src"], found["comm_dst"]) if sends else (found["comm_dst"], found["comm_src"])
    if own != rank or found["is_cpu_op"]:
        raise ValueError(f"node {message.id} is not one of rank {rank}")
    return Node(
        message.id, message.name, sends, peer, found["comm_size"], found["comm_tag"], tuple(message.data_deps)
    )  # fmt: skip
