"""Models in float16 and bfloat16, and mixtures with float32: halves at the borders, float32 inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from softneuro import providers
from softneuro.error_measure import measure_error, relative_error
from softneuro.providers.report import events
from tests.providers.conftest import check_model, cpu_session, make_model, random_feeds, reasons, whole_session
from tests.providers.test_ep_context import compiled, load, payload_of
from tests.providers.test_sessions import f32, i64

HALVES: dict[str, Any] = {"FLOAT16": np.float16, "BFLOAT16": ml_dtypes.bfloat16}
node = helper.make_node


def number_of(kind: str) -> int:
    return int(TensorProto.DataType.Value(kind))


def network(kind: str, size: int | str = 16, batch: int | str = 1, weights_in: str = "") -> bytes:
    """Convolutions, a residual, a pooling and a linear layer, all in one type; weights are as exact as `weights_in`."""
    rounded, dtype = HALVES.get(weights_in or kind, np.float32), HALVES.get(kind, np.float32)
    shapes = {"w1": (16, 3, 3, 3), "b1": (16,), "w2": (16, 16, 3, 3), "w3": (10, 16), "b3": (10,)}
    constants = {
        name: f32(*shape, seed=i).astype(rounded).astype(dtype) for i, (name, shape) in enumerate(shapes.items())
    }
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r"]),
        node("Conv", ["r", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r"], ["a"]),
        node("GlobalAveragePool", ["a"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["y"], transB=1),
    ]
    types = dict.fromkeys("xya", kind)
    return make_model(nodes, {"x": [batch, 3, size, size]}, {"y": None, "a": None}, constants, 22, types)


def run_bits(session: Any, values: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> list[np.ndarray]:
    """Runs a model in bfloat16, which NumPy has no type for."""
    make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    results = {name: np.zeros(shape, np.uint16) for name, shape in shapes.items()}
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", make(values.view(np.uint16), number_of("BFLOAT16")))
    for name, memory in results.items():
        binding.bind_ortvalue_output(name, make(memory, number_of("BFLOAT16")))
    session.run_with_iobinding(binding)
    return [memory.view(values.dtype) for memory in results.values()]


@pytest.mark.parametrize("tune", ["off", "profile"])
def test_float16(tune: str) -> None:
    """No further from what float32 makes of the same weights than the host's own result is."""
    model, truth = network("FLOAT16"), cpu_session(network("FLOAT", weights_in="FLOAT16"))
    ours, cpu = whole_session(model, tune=tune, never_worse=0, time_budget_s=0.3), cpu_session(model)
    feeds = random_feeds(cpu)
    exact = truth.run(None, {"x": feeds["x"].astype(np.float32)})
    for result, reference, right in zip(ours.run(None, feeds), cpu.run(None, feeds), exact, strict=True):
        assert result.dtype == np.float16
        assert measure_error(result, reference, right).within(1e-4)
    assert not reasons(ours)


def test_float16_of_open_shapes() -> None:
    check_model(network("FLOAT16", "s", "n"), {"s": 9, "n": 3}, bound=1e-3)


def test_bfloat16_which_the_host_has_no_kernels_for() -> None:
    model, truth = network("BFLOAT16"), cpu_session(network("FLOAT", weights_in="BFLOAT16"))
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        cpu_session(model)
    ours = whole_session(model, tune="profile", time_budget_s=0.3)
    x = f32(1, 3, 16, 16).astype(HALVES["BFLOAT16"])
    results = run_bits(ours, x, {"y": (1, 10), "a": (1, 16, 16, 16)})
    for result, right in zip(results, truth.run(None, {"x": x.astype(np.float32)}), strict=True):
        assert relative_error(result.astype(np.float32), right) < 3e-3  # half of a unit in the last place, L2
    assert not reasons(ours)


@pytest.mark.parametrize("kind", HALVES)
def test_islands(kind: str) -> None:
    """Casts to a half type and back lie inside: all is computed in float32, with weights from their short form."""
    w, other = f32(8, 3, 3, 3).astype(HALVES[kind]), f32(8, 8, 3, 3, seed=1)

    def model(island: bool) -> bytes:
        weight = w if island else w.astype(np.float32)
        head = [node("Cast", ["x"], ["h"], to=number_of(kind))] if island else [node("Identity", ["x"], ["h"])]
        tail = [node("Cast", ["r"], ["o"], to=1)] if island else [node("Identity", ["r"], ["o"])]
        body = [node("Conv", ["h", "w"], ["c"]), node("Relu", ["c"], ["r"]), *tail, node("Conv", ["o", "other"], ["y"])]
        return make_model([*head, *body], {"x": [1, 3, 9, 9]}, {"y": None}, {"w": weight, "other": other}, 22)

    ours, plain = whole_session(model(True)), cpu_session(model(False))
    feeds = random_feeds(plain)
    assert relative_error(ours.run(None, feeds)[0], plain.run(None, feeds)[0]) < 1e-6
    assert len([event for event in events(ours) if event["event"] == "prepared"]) == 1


def test_verdicts_of_islands_are_their_own() -> None:
    """The host runs an island in another way and with another error than the same graph without it."""

    def model(kind: str) -> bytes:
        w = f32(16, 8, 3, 3).astype(HALVES.get(kind, np.float32))
        nodes = [
            node("Cast", ["x"], ["h"], to=number_of(kind)),
            node("Conv", ["h", "w"], ["c"]),
            node("Relu", ["c"], ["r"]),
            node("Cast", ["r"], ["y"], to=1),
        ]
        return make_model(nodes, {"x": [1, 8, 20, 20]}, {"y": None}, {"w": w})

    def judged(kind: str, tune: str) -> list[float]:
        session = providers.session(model(kind), tune=tune, time_budget_s=0.3)
        return [event["error"] for event in events(session) if "error" in event]

    assert judged("FLOAT16", "profile")
    assert judged("FLOAT16", "cached")
    assert not judged("FLOAT", "cached")
    assert judged("FLOAT", "profile")


ALL = np.arange(1 << 16, dtype=np.uint16)  # every pattern of bits: denormals, infinities, NaNs with payloads


def test_every_float16() -> None:
    model = make_model([node("Neg", ["x"], ["y"])], {"x": [1 << 16]}, {"y": None}, types=dict.fromkeys("xy", "FLOAT16"))
    x = ALL.view(np.float16)
    result, host = (session(model).run(None, {"x": x})[0] for session in (whole_session, cpu_session))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(result.view(np.uint16)[numbers], host.view(np.uint16)[numbers])
    assert np.isnan(result[~numbers]).all()


def test_every_bfloat16() -> None:
    types = dict.fromkeys("xy", "BFLOAT16")
    model = make_model([node("Neg", ["x"], ["y"])], {"x": [1 << 16]}, {"y": None}, types=types)
    x = ALL.view(HALVES["BFLOAT16"])
    (result,) = run_bits(whole_session(model), x, {"y": x.shape})
    numbers = ~np.isnan(x.astype(np.float32))
    np.testing.assert_array_equal(result.view(np.uint16)[numbers], ALL[numbers] ^ 0x8000)
    assert np.isnan(result.astype(np.float32)[~numbers]).all()


def test_overflow_is_the_borders_alone() -> None:
    """Where a value leaves the region it is the host's infinity, and on its way inside it is what it is."""
    nodes = [node("Mul", ["x", "eight"], ["b"]), node("Mul", ["b", "eighth"], ["y"])]
    constants = {"eight": np.float16(8), "eighth": np.float16(0.125)}
    model = make_model(nodes, {"x": [2]}, {"b": None, "y": None}, constants, types=dict.fromkeys("xyb", "FLOAT16"))
    border, inside = whole_session(model).run(None, {"x": np.array([60000, -60000], np.float16)})
    np.testing.assert_array_equal(border, np.array([np.inf, -np.inf], np.float16))
    np.testing.assert_array_equal(inside, np.array([60000, -60000], np.float16))


def test_types_that_do_not_mix() -> None:
    """An op with operands of two types is no model: the runtime says so before anybody asks for it."""
    model = make_model([node("Add", ["x", "h"], ["y"])], {"x": [2], "h": [2]}, {"y": [2]}, types={"h": "FLOAT16"})
    for session in (whole_session, cpu_session):
        with pytest.raises(Exception, match="bound to different types"):
            session(model)


def test_types_that_mix() -> None:
    """Parameters may be of another type than what they are for."""
    statistics = {"s": f32(4), "b": f32(4, seed=1), "m": f32(4, seed=2), "v": abs(f32(4, seed=3)) + 1}
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"])]
    model = make_model(nodes, {"x": [2, 4, 3, 3]}, {"y": None}, statistics, types=dict.fromkeys("xy", "FLOAT16"))
    check_model(model, bound=1e-3)


def test_other_types_stay_with_the_host() -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("Pow", ["r", "e"], ["p"]), node("Cast", ["p"], ["y"], to=11)]
    model = make_model(nodes, {"x": [2, 3]}, {"y": None}, {"e": np.float64(2)}, types={"y": "DOUBLE"})
    ours, cpu = providers.session(model, tune="off", min_region_size=1), cpu_session(model)
    feeds = random_feeds(cpu)
    np.testing.assert_allclose(ours.run(None, feeds)[0], cpu.run(None, feeds)[0], rtol=1e-6)
    host = {row["op"]: row["reason"] for row in events(ours)[0]["host"]}
    assert host == {"Pow": "its input 1 is float64", "Cast": "its output is float64"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, kind.lower()) for kind in ("UINT8", "INT8")),
        *((kind, kind.lower()) for kind in ("UINT16", "INT16", "UINT32", "UINT64", "STRING", "FLOAT8E4M3FN")),
        *((kind, kind.lower()) for kind in ("FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4", "INT4")),
        ("DOUBLE", "float64"),
    ],
)
def test_types_by_their_names(kind: str, name: str) -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("Cast", ["r"], ["y"], to=number_of(kind))]
    model = make_model(nodes, {"x": [2, 3]}, {"y": None}, opset=22, types={"y": kind})
    (row,) = events(providers.session(model, tune="off", min_region_size=1))[0]["host"]
    assert row["reason"].split()[-1] == name


def test_gelu_spelt_out_in_float16() -> None:
    """The constants are float16's nearest."""
    nodes = [
        node("Div", ["x", "root"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["p"]),
        node("Mul", ["x", "p"], ["m"]),
        node("Mul", ["m", "half"], ["y"]),
    ]
    constants = {"root": np.float16(2**0.5), "one": np.float16(1), "half": np.float16(0.5)}
    model = make_model(nodes, {"x": [2, 40]}, {"y": None}, constants, types=dict.fromkeys("xy", "FLOAT16"))
    check_model(model, bound=1e-3)
    (prepared,) = (event for event in events(whole_session(model)) if event["event"] == "prepared")
    assert [layer["type"] for layer in prepared["layers"]] == ["activation"]


def test_sizes_by_way_of_float16() -> None:
    """Exporters halve sizes in the model's own type."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Shape", ["r"], ["s"], start=2),
        node("Cast", ["s"], ["sf"], to=10),
        node("Mul", ["sf", "double"], ["df"]),
        node("Cast", ["df"], ["d"], to=7),
        node("Shape", ["r"], ["n"], start=0, end=2),
        node("Concat", ["n", "d"], ["sizes"], axis=0),
        node("Resize", ["r", "", "", "sizes"], ["y"], mode="nearest"),
    ]
    constants = {"double": np.array([2], np.float16)}
    types = dict.fromkeys("xy", "FLOAT16")
    check_model(make_model(nodes, {"x": [1, 2, "h", 5]}, {"y": None}, constants, types=types), {"h": 7}, bound=0)


def test_compiled_model(tmp_path: Path) -> None:
    model = network("FLOAT16")
    plain = compiled(network("FLOAT"), tmp_path, entries={"softneuro.context_packed": "0"}).stat().st_size
    path = compiled(model, tmp_path, entries={"softneuro.context_packed": "0"})
    assert path.stat().st_size < 0.7 * plain  # weights are kept as they came
    ours, feeds = load(compiled(model, tmp_path)), random_feeds(cpu_session(model))
    for result, same in zip(ours.run(None, feeds), whole_session(model).run(None, feeds), strict=True):
        np.testing.assert_array_equal(result, same)
    assert not reasons(ours)


@pytest.mark.parametrize("name", ["x", "y"])
def test_compiled_model_of_another_type(tmp_path: Path, name: str) -> None:
    """Memory of float16 is never taken for float32."""
    model, _ = payload_of(compiled(network("FLOAT16"), tmp_path))
    for value in [*model.graph.input, *model.graph.output]:
        if value.name == name:
            value.type.tensor_type.elem_type = number_of("FLOAT")
    with pytest.raises(Exception, match=f"saved region is damaged: '{name}' is float16, the model declares float32"):
        load(model.SerializeToString())


def test_constants_as_outputs() -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("ConstantOfShape", ["s"], ["k"], value=_scalar(np.float16(0.1)))]
    nodes += [node("Shape", ["r"], ["s"]), node("Add", ["r", "k"], ["y"])]
    order = [nodes[0], nodes[2], nodes[1], nodes[3]]
    types = dict.fromkeys("xyk", "FLOAT16")
    check_model(make_model(order, {"x": ["n", 3]}, {"y": None, "k": None}, types=types), {"n": 2}, bound=1e-3)


def _scalar(value: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array([value]))


def test_indices_are_no_reals() -> None:
    """A weight of integers is refused where a layer needs reals, and the host goes on."""
    nodes = [node("Relu", ["x"], ["r"]), node("Gather", ["r", "i"], ["g"], axis=1), node("Sigmoid", ["g"], ["y"])]
    model = make_model(nodes, {"x": [2, 6]}, {"y": None}, {"i": i64(1, 2, 3)}, types=dict.fromkeys("xy", "FLOAT16"))
    check_model(model, bound=1e-3)
