"""onnx's bundled models through the provider: as on the CPU provider, as they are and with weights of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests

from softneuro import providers
from tests.providers.conftest import cpu_session, random_feeds, reasons, relative_error
from tests.providers.test_backend_nodes import Tally

LIGHT = Path(DATA_DIR) / "light"
QUICK = ["shufflenet", "squeezenet"]
SLOW = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512"]


def with_random_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The bundled weights are all 0.02, which hides an exchange of channels: others, as initializers, and the value
    before the softmax as a further output."""
    random = np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = [int(size) for size in shapes[node.input[0]]]
        if len(shape) > 1:
            value = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        else:
            value = random.uniform(0.5, 1.5, shape)
        model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    if nodes[-1].op_type == "Softmax":
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(nodes[-1].input[0]))
    return model


def check(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    for variant in (model, with_random_weights(model)):
        text = variant.SerializeToString()
        ours, cpu = providers.session(text, tune="off", min_region_size=1), cpu_session(text)
        feeds = random_feeds(cpu)
        for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
            assert relative_error(result, reference) <= 1e-4
        assert not reasons(ours)
    tally = Tally()
    tally.add(ours)
    with capsys.disabled():
        print(f"\n{name}: {tally}")
    assert set(tally.host) <= {"LRN"}


@pytest.mark.parametrize("name", QUICK)
def test_light_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(name, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_larger_light_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(name, capsys)


def test_all_light_models_are_known() -> None:
    assert {path.stem for path in LIGHT.glob("*.onnx")} == {f"light_{name}" for name in QUICK + SLOW}


def tensors(folder: Path, kind: str) -> list[Any]:
    """The files kind_0.pb, kind_1.pb, ...; None for what is no tensor."""
    values: list[Any] = []
    for index in range(len(list(folder.glob(f"{kind}_*.pb")))):
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString((folder / f"{kind}_{index}.pb").read_bytes())
            values.append(numpy_helper.to_array(tensor))
        except Exception:
            values.append(None)
    return values


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator", "pytorch-converted"])
def test_small_models(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    run, tally = 0, Tally()
    for case in load_model_tests(kind=kind):
        path = Path(case.model_dir) / "model.onnx"
        inputs = tensors(path.parent / "test_data_set_0", "input")
        expected = tensors(path.parent / "test_data_set_0", "output")
        if any(value is None for value in [*inputs, *expected]):
            continue  # sequences
        try:
            cpu = cpu_session(str(path))
            feeds = {entry.name: value for entry, value in zip(cpu.get_inputs(), inputs, strict=False)}
            reference = cpu.run(None, feeds)
        except Exception:
            continue  # a training domain, opsets that the runtime has dropped
        ours = providers.session(path, tune="off", min_region_size=1)
        for result, theirs, right in zip(ours.run(None, feeds), reference, expected, strict=True):
            np.testing.assert_equal(np.shape(result), np.shape(theirs), case.name)
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(result, theirs, 1e-4, 1e-5, err_msg=case.name)
                np.testing.assert_allclose(result, right, 1e-3, 1e-4, err_msg=case.name)
            else:
                np.testing.assert_array_equal(result, theirs, case.name)
        run += 1
        tally.add(ours)
    with capsys.disabled():
        print(f"\n{run} models of {kind}: {tally}")
    assert run >= {"simple": 15, "pytorch-operator": 20, "pytorch-converted": 40}[kind]
