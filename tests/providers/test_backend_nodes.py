"""onnx's own node tests through the provider: whatever the CPU provider passes has to pass, claimed or not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session

# That many models have one of these, at least: two of each case, but for types that numpy has not.
QUANTIZED = {
    "QuantizeLinear": 14,
    "DequantizeLinear": 24,
    "QLinearConv": 2,
    "QLinearMatMul": 16,
    "ConvInteger": 2,
    "MatMulInteger": 2,
    "DynamicQuantizeLinear": 6,
}


class Tally:
    """How many nodes of how many the provider has claimed in sessions, and which ops the host has kept."""

    def __init__(self) -> None:
        self.claimed = self.nodes = 0
        self.host: Counter[str] = Counter()

    def add(self, session: Any) -> None:
        for event in events(session):
            if event["event"] == "partition":
                self.claimed, self.nodes = self.claimed + event["claimed"], self.nodes + event["nodes"]
                self.host.update(node["op"] for node in event["host"])

    def __str__(self) -> str:
        left = ", ".join(f"{op} {count}" for op, count in self.host.most_common(12))
        share = f"{self.claimed} of {self.nodes} nodes claimed ({100 * self.claimed / max(self.nodes, 1):.0f} %)"
        return share + (f"; the host's: {left}" if left else "")


# The newest opset of which the runtime has kernels for all ops; onnx itself may be ahead of it.
OPSET = 25


def frozen(model: onnx.ModelProto, inputs: list[Any], which: list[int]) -> onnx.ModelProto:
    """The same model with some of its inputs initializers."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    infos = list(copy.graph.input)
    for at in which:
        value, name = inputs[at], infos[at].name
        if isinstance(value, np.ndarray) and not value.size:
            continue
        tensor = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        copy.graph.initializer.add().CopyFrom(tensor)
        copy.graph.initializer[-1].name = name
        copy.graph.input.remove(next(i for i in copy.graph.input if i.name == name))
    copy.ir_version = max(copy.ir_version, 4)
    return copy


def variants(model: onnx.ModelProto, inputs: list[Any]) -> list[onnx.ModelProto]:
    """As it is, and with every input but the first an initializer. So is what numpy has no type for."""
    odd = [at for at, value in enumerate(inputs) if not isinstance(value, np.ndarray)]
    return [frozen(model, inputs, odd), frozen(model, inputs, sorted({*odd, *range(1, len(inputs))}))]


def loaded(model: onnx.ModelProto) -> bytes | None:
    """The model in its own opset or an older one, as the CPU provider loads it; None if it loads neither."""
    for opset in (None, OPSET):
        for entry in model.opset_import:
            if opset and not entry.domain:
                entry.version = min(entry.version, opset)
        text = bytes(model.SerializeToString())
        try:
            cpu_session(text)
        except Exception:
            continue
        return text
    return None


def outcome(session: Any, feeds: dict[str, Any]) -> list[Any] | None:
    try:
        return session.run(None, feeds)
    except Exception:
        return None


def agree(results: list[Any] | None, expected: list[Any]) -> bool:
    if results is None:
        return False
    for result, reference in zip(results, expected, strict=True):
        if not isinstance(reference, np.ndarray) or reference.dtype.kind not in "fiub":
            continue
        if result.shape != reference.shape or not np.allclose(result, reference, 1e-3, 1e-4, equal_nan=True):
            return False
    return True


@pytest.mark.slow
def test_node_cases(capsys: pytest.CaptureFixture[str]) -> None:
    run, tally = 0, Tally()
    ops: Counter[str] = Counter()
    wrong = []
    for test in load_model_tests(kind="node"):
        model = test.model
        if model is None or not test.data_sets:
            continue
        # Scalars of numpy's are tensors of rank zero.
        inputs = [np.asarray(value) if isinstance(value, np.generic) else value for value in test.data_sets[0][0]]
        tensors = (np.ndarray, onnx.TensorProto)
        if len(inputs) != len(model.graph.input) or not all(isinstance(value, tensors) for value in inputs):
            continue  # sequences, optionals
        for variant in variants(model, inputs):
            text = loaded(variant)
            names = [info.name for info in variant.graph.input]
            feeds = {i.name: v for i, v in zip(model.graph.input, inputs, strict=True) if i.name in names}
            expected = outcome(cpu_session(text), feeds) if text is not None else None
            if text is None or expected is None:
                continue
            ours = providers.session(text, tune="off", min_region_size=1)
            run += 1
            ops.update({node.op_type for node in variant.graph.node})
            if not agree(outcome(ours, feeds), expected):
                wrong.append(test.name)
            tally.add(ours)
    with capsys.disabled():
        print(f"\n{run} node cases: {tally}")
    assert run > 1000
    assert all(ops[op] >= least for op, least in QUANTIZED.items())
    assert not wrong
