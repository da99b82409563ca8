"""An ONNX file whose weights stay where they lie: in the file, which all workers of the host map.

onnxruntime copies weights that are part of a model, and maps those that lie in a file of their own. The model's file
is that file: here its description is read, without the weights, and says of each where it stands in the file itself.
Of onnx.proto only the numbers of a few fields are known here.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

from shardqa.worker.ai.protobuf import MessageField, block, fields, numeric

MAPPED_BYTES = 1 << 16  # bytes of a weight that is worth a mapping of its own
GRAPH, INITIALIZER, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 7, 5, 9, 13, 14  # of ModelProto, GraphProto, TensorProto
EXTERNAL = 1  # a value of DATA_LOCATION


def without_weights(path: Path) -> bytes:
    """Returns the model without its weights, to be loaded beside `path`. Raises BadProtobuf, OSError."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        return b"".join(_model(data, path.name.encode()))


def _model(data: mmap.mmap, name: bytes) -> Iterator[bytes]:
    for field in fields(data, 0, len(data)):
        if field.number == GRAPH:
            yield block(GRAPH, b"".join(_graph(data, field, name)))
        else:
            yield data[field.start : field.end]


def _graph(data: mmap.mmap, graph: MessageField, name: bytes) -> Iterator[bytes]:
    for field in fields(data, graph.content, graph.end):
        if field.number == INITIALIZER:
            yield block(INITIALIZER, _initializer(data, field, name))
        else:
            yield data[field.start : field.end]


def _initializer(data: mmap.mmap, tensor: MessageField, name: bytes) -> bytes:
    parts_of_tensor = list(fields(data, tensor.content, tensor.end))
    raw = [field for field in parts_of_tensor if field.number == RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].content < MAPPED_BYTES:
        return data[tensor.content : tensor.end]
    where = {b"location": name, b"offset": b"%d" % raw[0].content, b"length": b"%d" % (raw[0].end - raw[0].content)}
    parts = [data[field.start : field.end] for field in parts_of_tensor if field.number != RAW_DATA]
    parts += [block(EXTERNAL_DATA, block(1, key) + block(2, value)) for key, value in where.items()]
    return b"".join([*parts, numeric(DATA_LOCATION, EXTERNAL)])
