"""Models whose convolutions and linear layers are ops of ours, with their routines named: to be read and edited."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import softneuro
from softneuro.providers import convert_quantized, library, report, sessions
from softneuro.providers.quantized_graph import constants_of

DOMAIN = "com.softneuro"
VERSION = 1
_WEIGHTS = "weights"
_LARGEST_FILE = 2**31 - 2**24  # of protobuf, with room for all but weights


def convert(
    model: str | os.PathLike[str] | bytes,
    out: str | os.PathLike[str],
    plan: str | os.PathLike[str] | None = None,
    sess_options: Any = None,
    **options: Any,
) -> dict[str, str]:
    """Writes an ONNX model in which convolutions and linear layers with constant weights are ops of `com.softneuro`.

    So are those between DequantizeLinear and QuantizeLinear, with these, and those that carry their scales. Signed
    bytes that flow become unsigned ones.

    Each such node names its routine in the attribute `routine`, where it can be read and changed; an empty one lets the
    library choose. Any runtime from 1.22 on loads the model once the library's ops are registered:
    `SessionOptions.register_custom_ops_library(softneuro.providers.get_library_path())`. Between these nodes blobs are
    row-major, so the model is slower than the same plan in a session with the provider.

    Args:
        model: path, or the model's bytes.
        out: file to write.
        plan: plan file to take the routines from; what it lacks is tuned and added to it.
        sess_options: onnxruntime.SessionOptions that fix open dimensions.
        options: as of `session`. Shapes that are open get no routine's name.

    Returns:
        The routine's descriptor by node name, of all nodes that were replaced.

    Raises:
        Error: an option is wrong, onnx or onnxruntime is missing, or nothing in the model can be replaced.
    """
    try:
        import onnx
    except ImportError as error:
        raise softneuro.Error("onnx is not installed: pip install 'softneuro[onnxruntime]'") from error
    settings = {**options, "never_worse": False, **({"plan": plan} if plan else {})}
    with tempfile.TemporaryDirectory() as folder:
        simple = Path(folder) / "model.onnx"
        simplify(model, simple)
        proto = onnx.load(str(simple))
        routines = _routines(str(simple), sess_options, settings)
    replaced = convert_quantized.convert(proto, DOMAIN, routines)
    constants = constants_of(proto)
    for node in proto.graph.node:
        if not node.domain and _replace(node, constants, proto.graph):
            name = text_of(node.name or node.output[0])
            replaced[name] = routines.get(name, "")
            node.attribute.append(onnx.helper.make_attribute("routine", replaced[name]))
    if not replaced:
        raise softneuro.Error("the model has no convolution or linear layer with constant weights")
    _drop_unused(proto.graph)
    if all(entry.domain != DOMAIN for entry in proto.opset_import):
        proto.opset_import.append(onnx.helper.make_opsetid(DOMAIN, VERSION))
    save(proto, Path(out))
    return replaced


def save(proto: Any, out: Path) -> None:
    """One file, or two where one would be too large."""
    import onnx

    weights = sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
    if weights < _LARGEST_FILE:
        return onnx.save(proto, str(out))
    beside = out.with_name(out.name + ".data")
    beside.unlink(missing_ok=True)  # what is there would be added to
    onnx.save(proto, str(out), save_as_external_data=True, location=beside.name)
    return None


def text_of(name: str | bytes) -> str:
    """As reports have it: protobuf gives a name that is not UTF-8 as its bytes."""
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def simplify(model: str | os.PathLike[str] | bytes, path: Path) -> None:
    """The model as the provider sees it: constants computed, batch normalisations folded."""
    onnxruntime = library.runtime()
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    settings.optimized_model_filepath = str(path)
    # Weights beside it: one file holds 2 GiB at most, and those that were outside are looked for here.
    settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", _WEIGHTS)
    settings.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    source = model if isinstance(model, bytes) else os.fspath(model)
    onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"])


def _routines(path: str, sess_options: Any, options: dict[str, Any]) -> dict[str, str]:
    session = sessions.session(path, sess_options, **options)
    found = {}
    for event in report.events(session):
        for layer in event.get("layers", []):
            if layer["type"] in {"conv2d", "conv1d", "linear"} and layer["descriptor"].startswith(layer["type"] + "/"):
                found[layer["name"]] = layer["descriptor"]
    return found


def _attributes(node: Any) -> dict[str, Any]:
    import onnx

    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _replace(node: Any, constants: dict[str, Any], graph: Any) -> bool:
    """Makes a node one of ours, but for its routine. False, and nothing done, for one that has to stay."""
    if node.op_type not in {"Conv", "Gemm", "MatMul"} or len(node.input) < 2 or not node.input[1]:
        return False
    given = [constants.get(name) for name in node.input[1:] if name]
    if any(tensor is None or tensor.data_type != 1 for tensor in given):
        return False
    while not node.input[-1]:
        del node.input[-1]
    values = _attributes(node)
    rank = len(constants[node.input[1]].dims)
    if node.op_type == "Conv" and rank in (3, 4):
        if values.get("auto_pad", b"NOTSET") != b"NOTSET" or min(values.get("pads", [0])) < 0:
            return False
        kept = [
            attribute for attribute in node.attribute if attribute.name in {"strides", "pads", "dilations", "group"}
        ]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.domain = DOMAIN
        return True
    if node.op_type in {"Gemm", "MatMul"} and rank == 2:
        return _replace_linear(node, values, constants, graph)
    return False


def _replace_linear(node: Any, values: dict[str, Any], constants: dict[str, Any], graph: Any) -> bool:
    import onnx

    if values.get("alpha", 1.0) != 1 or values.get("beta", 1.0) != 1 or values.get("transA", 0):
        return False
    weight = constants[node.input[1]]
    columns = weight.dims[0] if values.get("transB", 0) else weight.dims[1]
    if len(node.input) > 2 and list(constants[node.input[2]].dims) != [columns]:
        return False
    if not values.get("transB", 0):
        name = f"{text_of(node.input[1])!a} transposed"
        if name not in constants:
            matrix = onnx.numpy_helper.to_array(weight)
            constants[name] = onnx.numpy_helper.from_array(matrix.T.copy(), name)
            graph.initializer.append(constants[name])
        node.input[1] = name
    del node.attribute[:]
    node.op_type, node.domain = "Linear", DOMAIN
    return True


def _drop_unused(graph: Any) -> None:
    used = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    if bodies:  # that may read any initializer
        return
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
