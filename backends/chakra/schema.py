"""The messages of a Chakra trace, as a schema that is built at run time.

The fields have the names and numbers of `schema/protobuf/et_def.proto` of MLCommons Chakra (package `ChakraProtoMsg`);
only those that a trace of messages needs. Readers skip fields that they do not know, and miss none that they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from collc.ir.diagnostic import error

__all__ = ["COMM_RECV", "COMM_SEND", "Messages", "messages"]

#: values of `NodeType`
COMM_SEND, COMM_RECV = 5, 6

#: message -> fields: (name, number, type, whether it is repeated); a type in capitals is one of protobuf's
_FIELDS: Mapping[str, tuple[tuple[str, int, str, bool], ...]] = {
    "AttributeProto": (
        ("name", 1, "STRING", False), ("int32_val", 7, "INT32", False), ("int64_val", 9, "INT64", False),
        ("bool_val", 27, "BOOL", False), ("string_val", 29, "STRING", False),
    ),
    "GlobalMetadata": (("version", 1, "STRING", False), ("attr", 2, "AttributeProto", True)),
    "Node": (
        ("id", 1, "UINT64", False), ("name", 2, "STRING", False), ("type", 3, "NodeType", False),
        ("ctrl_deps", 4, "UINT64", True), ("data_deps", 5, "UINT64", True), ("attr", 10, "AttributeProto", True),
    ),
}  # fmt: skip
_NODE_TYPES = {
    "INVALID_NODE": 0, "METADATA_NODE": 1, "MEM_LOAD_NODE": 2, "MEM_STORE_NODE": 3, "COMP_NODE": 4,
    "COMM_SEND_NODE": COMM_SEND, "COMM_RECV_NODE": COMM_RECV, "COMM_COLL_NODE": 7,
}  # fmt: skip
#: fields of the one value of an attribute
_VALUES = ("int32_val", "int64_val", "bool_val", "string_val")

Messages = Mapping[str, Any]  # Any: classes that protobuf makes


@cache
def messages() -> Messages:
    """Return the classes of the messages by name; raise C0830 without protobuf."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise error(
            "C0830", "the target `chakra` needs the package `protobuf`", hint="`pip install 'collc[chakra]'`"
        ) from None
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    kinds = file.enum_type.add(name="NodeType")
    for name, number in _NODE_TYPES.items():
        kinds.value.add(name=name, number=number)
    for name, fields in _FIELDS.items():
        _add_message(file, name, fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = {name: pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}") for name in _FIELDS}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _add_message(file: Any, name: str, fields: tuple[tuple[str, int, str, bool], ...]) -> None:  # Any: of protobuf
    """Add a message to a description of a file."""
    message = file.message_type.add(name=name)
    if any(field in _VALUES for field, *_ in fields):
        message.oneof_decl.add(name="value")
    for field, number, kind, repeated in fields:
        one = message.field.add(name=field, number=number)
        one.label = one.LABEL_REPEATED if repeated else one.LABEL_OPTIONAL
        if kind.isupper():
            one.type = getattr(one, f"TYPE_{kind}")
        else:
            one.type = one.TYPE_ENUM if kind == "NodeType" else one.TYPE_MESSAGE
            one.type_name = f".ChakraProtoMsg.{kind}"
        if field in _VALUES:
            one.oneof_index = 0
