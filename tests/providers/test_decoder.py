"""Decoders as a whole: a prompt and then single tokens, whose caches are fed back, as on the CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from softneuro import providers
from softneuro.providers.report import events
from tests.providers.conftest import cpu_session, reasons, relative_error, whole_session

LAYERS, WORDS, H, G, D, INNER, LONGEST, CAPACITY = 2, 40, 4, 2, 16, 48, 32, 16
WIDTH = H * D
PROMPT = [3, 1, 4, 1, 5]

node = helper.make_node


class Decoder:
    """An ONNX graph as model builders write it. `bits`: of the weights of products, 32 for floats."""

    def __init__(self, bits: int) -> None:
        self.bits, self.random = bits, np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants[name] = value
        return name

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype(np.float32)

    def op(self, op: str, inputs: list[str], outputs: str, domain: str = "", **attrs: Any) -> str:
        self.nodes.append(node(op, inputs, outputs.split(), domain=domain, **attrs))
        return outputs.split(maxsplit=1)[0]

    def product(self, x: str, columns: int, rows: int, name: str) -> str:
        if self.bits == 32:
            weight = self.constant(f"{name}_w", self.normal(columns, rows) / np.float32(np.sqrt(columns)))
            return self.op("MatMul", [x, weight], name)
        blocks = columns // 16
        packed = self.random.integers(0, 256, (rows, blocks, 8)).astype(np.uint8)
        scales = (self.random.random((rows, blocks)) / (2 * np.sqrt(columns))).astype(np.float32)
        inputs = [x, self.constant(f"{name}_w", packed), self.constant(f"{name}_s", scales)]
        attrs = {"K": columns, "N": rows, "bits": 4, "block_size": 16}
        return self.op("MatMulNBits", inputs, name, "com.microsoft", **attrs)

    def layer(self, i: int, normed: str, skip: str, last: bool) -> tuple[str, str]:
        qkv = self.product(normed, WIDTH, (H + 2 * G) * D, f"qkv{i}")
        past = [f"past.{i}.key", f"past.{i}.value"]
        inputs = [qkv, "", "", *past, "seqlens", "total", "cosine", "sine"]
        outputs = f"context{i} present.{i}.key present.{i}.value"
        attrs = {"num_heads": H, "kv_num_heads": G, "do_rotary": 1}
        context = self.op("GroupQueryAttention", inputs, outputs, "com.microsoft", **attrs)
        added = self.product(context, WIDTH, WIDTH, f"o{i}")
        normed = self.normed([skip, added], f"mid{i}")
        gate, up = self.product(normed, WIDTH, INNER, f"gate{i}"), self.product(normed, WIDTH, INNER, f"up{i}")
        active = self.op("Mul", [gate, self.op("Sigmoid", [gate], f"sigmoid{i}")], f"active{i}")
        added = self.product(self.op("Mul", [active, up], f"wide{i}"), INNER, WIDTH, f"down{i}")
        return self.normed([f"mid{i}_sum", added], f"end{i}", last), f"end{i}_sum"

    def normed(self, inputs: list[str], name: str, last: bool = False) -> str:
        weight = self.constant(f"{name}_norm", 1 + self.normal(WIDTH) / 10)
        outputs = [name] if last else [name, "", "", f"{name}_sum"]
        op = "SkipSimplifiedLayerNormalization"
        self.nodes.append(node(op, [*inputs, weight], outputs, domain="com.microsoft", epsilon=1e-5))
        return name

    def model(self) -> bytes:
        one = self.constant("one", np.array(1, np.int64))
        angles = np.outer(np.arange(LONGEST), 100.0 ** (-np.arange(D // 2) / (D // 2)))
        self.constant("cosine", np.cos(angles).astype(np.float32))
        self.constant("sine", np.sin(angles).astype(np.float32))
        axis = self.constant("axis", np.array([1], np.int64))
        kept = self.op("ReduceSum", ["mask", axis], "kept", keepdims=0)
        self.op("Cast", [self.op("Sub", [kept, one], "last")], "seqlens", to=TensorProto.INT32)
        length = self.op("Gather", [self.op("Shape", ["mask"], "sizes"), one], "length", axis=0)
        self.op("Cast", [length], "total", to=TensorProto.INT32)
        skip = self.op("Gather", [self.constant("words", self.normal(WORDS, WIDTH)), "ids"], "skip0")
        first = self.constant("first_norm", 1 + self.normal(WIDTH) / 10)
        normed = self.op("SimplifiedLayerNormalization", [skip, first], "normed0", axis=-1, epsilon=1e-5)
        for i in range(LAYERS):
            normed, skip = self.layer(i, normed, skip, i == LAYERS - 1)
        self.product(normed, WIDTH, WORDS, "logits")
        caches = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]

        def info(name: str, kind: int, shape: list[Any]) -> Any:
            return helper.make_tensor_value_info(name, kind, shape)

        real, whole = TensorProto.FLOAT, TensorProto.INT64
        graph = helper.make_graph(
            self.nodes,
            "decoder",
            [
                info("ids", whole, ["b", "s"]),
                info("mask", whole, ["b", "t"]),
                *(info(f"past.{name}", real, ["b", G, "p", D]) for name in caches),
            ],
            [
                info("logits", real, ["b", "s", WORDS]),
                *(info(f"present.{name}", real, ["b", G, "n", D]) for name in caches),
            ],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


CACHES = [f"{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]


def generate(session: Any, capacity: int = 0, steps: int = 6) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Logits of every call, and the last caches. `capacity`: of caches that keep their size; 0: they grow."""
    caches = {f"past.{name}": np.zeros((1, G, capacity, D), np.float32) for name in CACHES}
    names, logits, new = [output.name for output in session.get_outputs()], [], list(PROMPT)
    for step in range(steps + 1):
        seen = len(PROMPT) + step
        feeds = {"ids": np.array([new]), "mask": np.ones((1, seen), np.int64), **caches}
        made = dict(zip(names, session.run(None, feeds), strict=True))
        logits.append(made["logits"])
        caches = {f"past.{name}": made[f"present.{name}"] for name in CACHES}
        new = [int(made["logits"][0, -1].argmax())]
    return logits, caches


def check_generated(ours: Any, cpu: Any) -> None:
    for result, reference in zip(ours[0], cpu[0], strict=True):
        assert relative_error(result, reference) <= 1e-4
        np.testing.assert_array_equal(result.argmax(-1), reference.argmax(-1))
    for name in ours[1]:
        assert relative_error(ours[1][name], cpu[1][name]) <= 1e-4


@pytest.mark.parametrize("bits", [4, 32])
@pytest.mark.parametrize("capacity", [0, CAPACITY])
def test_all_of_a_decoder_is_one_region(bits: int, capacity: int) -> None:
    model = Decoder(bits).model()
    ours = whole_session(model)
    check_generated(generate(ours, capacity), generate(cpu_session(model), capacity))
    # The host has the calls of empty pasts.
    assert reasons(ours) == ([] if capacity else ["it is on an empty tensor"])
    (partition,) = [event for event in events(ours) if event["event"] == "partition"]
    assert partition["claimed"] == partition["nodes"]
    assert len({event["region"] for event in events(ours) if event["event"] == "prepared"}) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_bound_caches(shared: bool) -> None:
    """Presents go into memory of the caller's: the other one of two buffers, or the past's own."""
    model = Decoder(4).model()

    def steps(session: Any) -> list[np.ndarray]:
        first, _ = generate(session, CAPACITY, steps=0)
        random = np.random.default_rng(1)
        start = {name: random.standard_normal((1, G, CAPACITY, D)).astype(np.float32) for name in CACHES}
        held = [{name: x.copy() for name, x in start.items()} for _ in range(2)]  # whose memory the values borrow
        caches = [{name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in one.items()} for one in held]
        logits, new = [], list(PROMPT)
        for step in range(6):
            past, present = (caches[0], caches[0]) if shared else (caches[step % 2], caches[1 - step % 2])
            binding = session.io_binding()
            ids, mask = np.array([new]), np.ones((1, len(PROMPT) + step), np.int64)
            binding.bind_cpu_input("ids", ids)
            binding.bind_cpu_input("mask", mask)
            for name in CACHES:
                binding.bind_ortvalue_input(f"past.{name}", past[name])
                binding.bind_ortvalue_output(f"present.{name}", present[name])
            binding.bind_output("logits")
            session.run_with_iobinding(binding)
            logits.append(binding.get_outputs()[len(CACHES)].numpy().copy())
            new = [int(logits[-1][0, -1].argmax())]
        np.testing.assert_allclose(logits[0], first[0], rtol=1e-5, atol=1e-6)
        return logits + [caches[0][name].numpy()[:, :, : len(PROMPT) + 4].copy() for name in CACHES]

    ours = whole_session(model)
    for result, reference in zip(steps(ours), steps(cpu_session(model)), strict=True):
        assert relative_error(result, reference) <= 1e-4
    assert not reasons(ours)


def merged() -> bytes:
    """What says whether there is a past chooses the branch: with it, or without."""

    def branch(name: str, past: list[str], total: str) -> Any:
        outputs = [f"{name}_{output}" for output in ("y", "k", "v")]
        inputs = ["q", "k", "v", *past, "lengths", total]
        made = node("GroupQueryAttention", inputs, outputs, domain="com.microsoft", num_heads=H, kv_num_heads=G)
        infos = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in outputs]
        return helper.make_graph([made], name, [], infos)

    def info(name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    branches = {
        "then_branch": branch("then", ["pk", "pv"], "behind"),
        "else_branch": branch("else", ["", ""], "alone"),
    }
    graph = helper.make_graph(
        [node("Tanh", ["x"], ["q"]), node("If", ["c"], ["y", "present_k", "present_v"], **branches)],
        "main",
        [
            info("c", [], TensorProto.BOOL),
            info("x", [1, 2, H * D]),
            info("k", [1, 2, G * D]),
            info("v", [1, 2, G * D]),
            info("pk", [1, G, 3, D]),
            info("pv", [1, G, 3, D]),
            info("lengths", [1], TensorProto.INT32),
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "present_k", "present_v")],
        [numpy_helper.from_array(np.array(n, np.int32), name) for name, n in (("behind", 5), ("alone", 2))],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def test_branches_with_a_past_and_without() -> None:
    model = merged()
    ours, cpu = providers.session(model, tune="off", min_region_size=1, never_worse=False), cpu_session(model)
    random = np.random.default_rng(0)
    feeds = {
        entry.name: random.standard_normal(entry.shape).astype(np.float32)
        for entry in cpu.get_inputs()
        if entry.type == "tensor(float)"
    }
    for past in (True, False, True):
        feeds |= {"c": np.array(past), "lengths": np.array([4 if past else 1], np.int32)}
        for result, reference in zip(ours.run(None, feeds), cpu.run(None, feeds), strict=True):
            assert relative_error(result, reference) <= 1e-5
    claimed = {event["graph"]: event["claimed"] for event in events(ours) if event["event"] == "partition"}
    assert claimed == {"then": 1, "else": 1, "main": 1}
    assert not reasons(ours)
