"""An ONNX file in two at one of its values: what comes before the value, and what comes after it.

Nodes and weights are taken over as they are, each into the half that needs it, or both. A file says by SPLIT_AT where
it is to be cut. Of onnx.proto only the numbers of a few fields are known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from shardqa.models.split import SPLIT_AT
from shardqa.module.worker.ai.protobuf import BadProtobuf, MessageField, block, fields, numeric

GRAPH, METADATA = 7, 14  # of ModelProto
NODE, INITIALIZER, INPUT, OUTPUT = 1, 5, 11, 12  # of GraphProto
INITIALIZER_NAME, VALUE_NAME = 8, 1  # of TensorProto and ValueInfoProto
NODE_INPUT, NODE_OUTPUT = 1, 2  # of NodeProto
FLOAT = 1

Sizes: TypeAlias = Sequence[int | str | None]


class _Node(NamedTuple):
    field: MessageField
    inputs: list[bytes]
    outputs: list[bytes]


class CutOnnx:
    def __init__(self, content: bytes, value: str) -> None:
        """`value`: the name of what a node makes. Raises BadProtobuf."""
        self._content = content
        self._value = value.encode()
        self._nodes: list[_Node] = []
        self._named: dict[int, dict[bytes, MessageField]] = {INITIALIZER: {}, INPUT: {}, OUTPUT: {}}
        for field in self._fields_of_graph():
            if field.number == NODE:
                self._nodes.append(_Node(field, self._texts(field, NODE_INPUT), self._texts(field, NODE_OUTPUT)))
            elif field.number in self._named:
                name = INITIALIZER_NAME if field.number == INITIALIZER else VALUE_NAME
                self._named[field.number] |= dict.fromkeys(self._texts(field, name), field)
        if not any(self._value in node.outputs for node in self._nodes):
            raise BadProtobuf(f"it says that it is split at {value!r}, and makes no such value")

    @property
    def inputs(self) -> list[str]:
        """Of the whole, in its order."""
        return [name.decode("utf-8", "replace") for name in self._named[INPUT]]

    def lower(self) -> bytes:
        """What makes the value, which is its output."""
        nodes, names = self._needed([self._value], b"")
        return self._model(nodes, names, b"", _value(OUTPUT, self._value, None))

    def upper(self, sizes: Sizes) -> bytes:
        """What makes the outputs from the value, an input of floats with these sizes, and from other inputs."""
        nodes, names = self._needed(list(self._named[OUTPUT]), self._value)
        given = _value(INPUT, self._value, sizes)
        return self._model(nodes, names, given, b"".join(self._raw(field) for field in self._named[OUTPUT].values()))

    def _needed(self, wanted: Sequence[bytes], given: bytes) -> tuple[list[_Node], set[bytes]]:
        """The nodes that make these values, in their order, and all names in them; what makes `given` is left out."""
        names, found = set(wanted), list[_Node]()
        for node in reversed(self._nodes):
            if any(name in names and name != given for name in node.outputs):
                found.append(node)
                names.update(node.inputs)
        return found[::-1], names

    def _model(self, nodes: Sequence[_Node], names: set[bytes], more_inputs: bytes, outputs: bytes) -> bytes:
        kept = [field for kind in (INITIALIZER, INPUT) for name, field in self._named[kind].items() if name in names]
        body = [self._raw(node.field) for node in nodes] + [self._raw(field) for field in kept]
        graph = b"".join([block(2, b"part"), *body, more_inputs, outputs])  # 2: its name, without which it is none
        return b"".join([*(self._raw(field) for field in self._fields_of_model()), block(GRAPH, graph)])

    def _fields_of_model(self) -> Iterator[MessageField]:
        """All but the graph and what is said about it."""
        whole = fields(self._content, 0, len(self._content))
        return (field for field in whole if field.number not in (GRAPH, METADATA))

    def _fields_of_graph(self) -> Iterator[MessageField]:
        for field in fields(self._content, 0, len(self._content)):
            if field.number == GRAPH:
                yield from fields(self._content, field.content, field.end)

    def _texts(self, message: MessageField, number: int) -> list[bytes]:
        found = fields(self._content, message.content, message.end)
        return [self._content[field.content : field.end] for field in found if field.number == number]

    def _raw(self, field: MessageField) -> bytes:
        return self._content[field.start : field.end]


def split_at(content: bytes) -> str | None:
    """The value at which a file wants to be cut; None where it says nothing, or is no ONNX file."""
    try:
        for field in fields(content, 0, len(content)):
            if field.number == METADATA:
                pair = {part.number: content[part.content : part.end] for part in _parts(content, field)}
                if pair.get(1) == SPLIT_AT.encode():
                    return pair.get(2, b"").decode("utf-8", "replace")
    except BadProtobuf:  # onnxruntime says of it what there is to say
        return None
    return None


def _parts(content: bytes, message: MessageField) -> Iterator[MessageField]:
    return fields(content, message.content, message.end)


def _value(number: int, name: bytes, sizes: Sizes | None) -> bytes:
    """A value of floats as a field of a graph; None: of sizes that onnxruntime finds out."""
    shape = b"" if sizes is None else block(2, b"".join(block(1, _size(size)) for size in sizes))
    return block(number, block(1, name) + block(2, block(1, numeric(1, FLOAT) + shape)))


def _size(size: int | str | None) -> bytes:
    if size is None:
        return b""
    return numeric(1, size) if isinstance(size, int) else block(2, size.encode())
