"""Linear layers as transformers are quantized: weights alone, or with the ranges of activations found in the run."""

import logging
import math

import pytest
import torch
from torch import nn

from softneuro.error_measure import relative_error
from softneuro.torch_backend import explain, load
from tests.torch.conftest import OPTIONS
from tests.torch.quantized_models import pt2e
from tests.torch.told import host_computes

logging.getLogger("torchao").setLevel(logging.ERROR)
pytestmark = pytest.mark.usefixtures("no_grad")


def torchao_config(name, **arguments):
    from torchao import quantization

    return getattr(quantization, name)(set_inductor_config=False, **arguments)


def per_tensor():
    from torchao.quantization import PerTensor

    return {"granularity": PerTensor()}


def asymmetric():
    from torchao.quantization.quant_primitives import MappingType

    return {"act_mapping_type": MappingType.ASYMMETRIC}


def quantized(model, config):
    from torchao.quantization import quantize_

    quantize_(model.eval(), config)
    return model


def weight_only(model, **arguments):
    return quantized(model, torchao_config("Int8WeightOnlyConfig", **arguments))


def dynamic(model, **arguments):
    return quantized(model, torchao_config("Int8DynamicActivationInt8WeightConfig", **arguments))


def exported(model, *inputs):
    from torchao.quantization.pt2e import allow_exported_model_train_eval

    return allow_exported_model_train_eval(pt2e(model, *inputs, is_dynamic=True))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 17, bias=False))

    def forward(self, x):
        return self.layers(x)


class Attention(nn.Module):
    """One quantization of x for three layers, where the host has it so."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.width = heads, width // heads
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=bias) for bias in (True, False, True))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = (
            layer(y).unflatten(-1, (self.heads, self.width)).transpose(1, 2) for layer in (self.q, self.k, self.v)
        )
        y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.width), -1) @ v
        return x + self.out(y.transpose(1, 2).flatten(2))


def encoder():
    return nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")


KINDS = ("dynamic_linear", "linear", "linear_blocks", "host")


def kinds(compiled, *inputs):
    """How many layers there are of each type."""
    words = [line.split()[1] for line in explain(compiled, *inputs).splitlines() if "/cpu:" in line]
    return {kind: sum(word.startswith(kind + "/") for word in words) for kind in KINDS}


def check(compiled, model, *inputs, bound=1e-5):
    result, expected = compiled(*inputs), model(*inputs)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    error = relative_error(result.float().numpy(), expected.float().numpy())
    assert error <= bound, f"{error:.2e}"


def check_whole(compiled, model, *inputs, bound=1e-5, **counts):
    """One region, right, of these layers."""
    check(compiled, model, *inputs, bound=bound)
    assert kinds(compiled, *inputs) == {**dict.fromkeys(KINDS, 0), **counts}
    text = explain(compiled, *inputs)
    assert "1 region(s)" in text
    assert not host_computes(text)
    assert "softneuro runs it" in text


X = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("granularity", [dict, per_tensor])
def test_weight_only(granularity, compile_model, in_bytes):
    model = weight_only(Perceptron(), **granularity())
    check_whole(compile_model(model), model, X, linear=2)
    assert in_bytes == [True, True]


def test_weight_only_in_groups(compile_model):
    from torchao.quantization import PerGroup

    model = weight_only(Perceptron(), granularity=PerGroup(16))
    model.layers[0].weight.zero_point[3, 1] = 5
    compiled = compile_model(model)
    check_whole(compiled, model, X, linear_blocks=2)
    for change in ("qdata", "scale", "zero_point"):
        before = compiled(X)
        getattr(model.layers[2].weight, change)[4, 2] += 1
        check(compiled, model, X)
        assert not torch.equal(compiled(X), before)


@pytest.mark.parametrize("mapping", ["SYMMETRIC", "ASYMMETRIC"])
def test_weight_only_of_four_bits(mapping, compile_model):
    """Their values are stored as bytes, and packed as what they are. An odd number of groups has half a byte left."""
    from torchao.quantization import IntxWeightOnlyConfig, PerGroup
    from torchao.quantization.quant_primitives import MappingType

    kind = {"weight_dtype": torch.int4, "granularity": PerGroup(32), "mapping_type": MappingType[mapping]}
    model = quantized(nn.Sequential(nn.Linear(96, 24), nn.ReLU()), IntxWeightOnlyConfig(**kind))
    x = torch.randn(3, 96)
    compiled = compile_model(model)
    check_whole(compiled, model, x, linear_blocks=1)
    assert "bits=4" in explain(compiled, x)
    model[0].weight.qdata[3, 4] = 100  # which is no value of 4 bits
    check(compiled, model, x)


@pytest.mark.parametrize(("size", "columns"), [(8, 16), (24, 48), (8192, 16384)])
def test_groups_of_other_sizes_are_floats(size, columns, compile_model):
    from torchao.quantization import PerGroup

    model = weight_only(nn.Sequential(nn.Linear(columns, 3), nn.ReLU()), granularity=PerGroup(size))
    check_whole(compile_model(model), model, torch.randn(2, columns), linear=1)


DYNAMIC = {
    "rows": dict,
    "a tensor": per_tensor,
    "asymmetric rows": asymmetric,
    "asymmetric tensor": lambda: {**per_tensor(), **asymmetric()},
    "reduced range": lambda: {"reduce_range": True},
    "asymmetric reduced range": lambda: {"reduce_range": True, **asymmetric()},
}


@pytest.mark.parametrize("instructions", ["amx", "vnni"])
@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic(name, instructions, compile_model, in_bytes, monkeypatch):
    """For CPUs that multiply unsigned bytes by signed ones alone, torchao has other ops."""
    from torchao.kernel import intmm

    monkeypatch.setattr(intmm, "_cpu_is_amx_tile_supported", lambda: instructions == "amx")
    monkeypatch.setattr(intmm, "_cpu_is_vnni_supported", lambda: True)
    model = dynamic(Perceptron(), **DYNAMIC[name]())
    for x in (X, X[:1], X[1, 2:3], -X.abs(), 1e3 * X[0].relu()):
        torch._dynamo.reset()
        check_whole(compile_model(model), model, x, dynamic_linear=2)
    assert all(in_bytes)


@pytest.mark.parametrize("how", [weight_only, dynamic], ids=["weight only", "dynamic"])
@pytest.mark.parametrize("name", ["attention", "encoder"])
def test_blocks(name, how, compile_model, monkeypatch):
    """Torchao leaves two layers of an encoder as they are, and attention is a layer of its own."""
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", False)  # which torchao's tensors do not know
    model = how(Attention() if name == "attention" else encoder())
    counts = {"host": 0, "linear": 0} if name == "attention" else {"host": 0, "linear": 2}
    kind = "linear" if how is weight_only else "dynamic_linear"
    counts[kind] = counts.get(kind, 0) + (4 if name == "attention" else 2)
    check_whole(compile_model(model), model, X, **counts, bound=1e-5 if how is weight_only else 2e-3)


@pytest.mark.parametrize("name", ["perceptron", "attention"])
def test_export_flow(name, compile_model, in_bytes):
    make, layers = (Perceptron, 2) if name == "perceptron" else (Attention, 4)
    model = exported(make(), X)
    check_whole(compile_model(model), model, X, dynamic_linear=layers, bound=2e-3)
    assert in_bytes == [True] * layers


def test_export_flow_of_matrices(compile_model):
    model = exported(nn.Linear(32, 9), X[0])
    for x in (X[0], 100 * X[0].abs(), torch.zeros(5, 32)):
        torch._dynamo.reset()
        check(compile_model(model, min_region_size=1), model, x, bound=1e-6)
    assert kinds(compile_model(model, min_region_size=1), X[0])["dynamic_linear"] == 1


@pytest.mark.parametrize("scale", [0.02, 1.5])
def test_static(scale, compile_model, in_bytes):
    """Known scales give bytes by bytes, as in any quantized model."""
    config = torchao_config(
        "Int8StaticActivationInt8WeightConfig", act_quant_scale=torch.tensor([[[scale]]]), **per_tensor()
    )
    model = quantized(Perceptron(), config)
    compiled = compile_model(model)
    check_whole(compiled, model, X, linear=2, bound=1e-2)
    text = explain(compiled, X)
    assert text.count("linear/cpu:qint8") == text.count("quantize/cpu:float32") == 2
    assert in_bytes == [True, True]


CHANGES = [
    pytest.param(how, change, id=f"{name}, {change}")
    for name, how in {"weight only": weight_only, "dynamic": dynamic, "exported": exported}.items()
    for change in ("bytes", "scales", "bias", "replaced")
    if how is not exported or change != "replaced"  # its bytes have no module of their own
]


@pytest.mark.parametrize(("how", "change"), CHANGES)
def test_fresh_weights(how, change, compile_model):
    model = exported(Perceptron(), X) if how is exported else how(Perceptron())
    compiled = compile_model(model)
    check(compiled, model, X)
    before = compiled(X)
    if how is exported:
        parts = dict(model.named_buffers())
        stored = next(value for value in parts.values() if value.dtype == torch.int8)
        scales = next(value for name, value in parts.items() if name.startswith("_scale"))
    else:
        stored, scales = model.layers[0].weight.qdata, model.layers[0].weight.scale
    if change == "bytes":
        stored[3] = -stored[3]
    elif change == "scales":
        scales[5] *= 1.5
    elif change == "bias":
        next(value for name, value in model.named_parameters() if name.endswith("bias")).data[7] += 1
    else:
        model.layers[0] = how(nn.Linear(32, 48))
    check(compiled, model, X)
    assert not torch.equal(compiled(X), before)


@pytest.mark.parametrize("how", [weight_only, dynamic], ids=["weight only", "dynamic"])
def test_open_sizes(how, compile_model, regions):
    model = how(Perceptron())
    compiled = compile_model(model, dynamic=True)
    for batch, rows in ((2, 5), (3, 7), (1, 1), (2, 33)):
        x = torch.randn(batch, rows, 32)
        check(compiled, model, x)
        counts = kinds(compiled, x)
        assert counts["host"] == 0
        assert counts["linear" if how is weight_only else "dynamic_linear"] % 2 == 0
        assert all(shaped.host is None for region in regions() for shaped in region.shaped.values())
    assert len(regions()) == 2  # one for a batch of one


def test_open_sizes_of_the_export_flow(compile_model, regions):
    from torchao.quantization.pt2e import allow_exported_model_train_eval

    shapes = ({0: torch.export.Dim.AUTO},)
    model = allow_exported_model_train_eval(pt2e(Perceptron(), X, dynamic_shapes=shapes, is_dynamic=True))
    compiled = compile_model(model, dynamic=True)
    for batch in (2, 7):
        x = torch.randn(batch, 5, 32)
        check(compiled, model, x)
        assert kinds(compiled, x) == {**dict.fromkeys(KINDS, 0), "dynamic_linear": 2 if batch == 2 else 4}
    assert len(regions()) == 1


@pytest.mark.parametrize("how", [weight_only, dynamic], ids=["weight only", "dynamic"])
def test_halves(how, compile_model):
    """The host rounds what comes of each op, scales among it."""
    model = how(Perceptron().bfloat16())
    x = X.bfloat16()
    compiled = compile_model(model)
    kind = "linear" if how is weight_only else "dynamic_linear"
    check_whole(compiled, model, x, **{kind: 2}, bound=3e-2)


@pytest.mark.parametrize("how", [weight_only, dynamic, exported], ids=["weight only", "dynamic", "exported"])
def test_loaded_program(how, regions, in_bytes):
    model = exported(Perceptron(), X) if how is exported else how(Perceptron())
    program = torch.export.export(model, (X,))
    loaded = load(program, **OPTIONS)
    check(loaded, model, X)
    kind = "linear" if how is weight_only else "dynamic_linear"
    assert kinds(loaded, X)[kind] == in_bytes.count(True) == 2
    before = loaded(X)
    stored = (t.qdata if hasattr(t, "qdata") else t for t in loaded.weights)
    next(t for t in stored if t.dtype == torch.int8).neg_()
    check(loaded, model, X)
    assert not torch.equal(loaded(X), before)
    assert len(regions()) == 1


def test_inductor_as_host(compile_model):
    model = dynamic(Attention())
    check_whole(compile_model(model, host="inductor"), model, X, dynamic_linear=4, bound=2e-3)


def test_a_quantization_that_is_wanted_itself_stays(compile_model):
    """Nothing of it, or of what is spelt in its ops, is taken in part."""
    model = exported(Perceptron(), X)
    graph = model.graph
    (output,) = graph.find_nodes(op="output")
    second = [node for node in graph.nodes if str(node.target).startswith("quantized_decomposed.quantize_per_tensor")][
        1
    ]
    output.args = ((*output.args[0], second),)
    graph.set_codegen(torch.fx.graph.CodeGen())
    model.recompile()
    compiled = compile_model(model)
    for result, expected in zip(compiled(X), model(X), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5 if result.is_floating_point() else 1)
    assert kinds(compiled, X)["dynamic_linear"] == 1
    assert "its bytes are a result" in explain(compiled, X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_by_hand(dtype, compile_model, regions):
    model = nn.Module()
    model.bytes = nn.Buffer(torch.randint(-128, 128, (9, 32), dtype=torch.int8))
    model.scales, model.bias = nn.Buffer(torch.rand(9, dtype=dtype)), nn.Buffer(torch.randn(9, dtype=dtype))
    model.forward = lambda x: torch.relu(x @ model.bytes.t().to(dtype) * model.scales + model.bias)
    compiled, x = compile_model(model), X[0].to(dtype)
    if dtype == torch.float32:
        check_whole(compiled, model, x, linear=1)
    else:
        torch.testing.assert_close(compiled(x), model(x))
        assert not regions()


def test_weights_that_kernels_do_not_take(compile_model):
    """A scale of zero: weights are floats, or sums are multiplied by it afterwards."""
    for how, kind in ((weight_only, "linear"), (dynamic, "dynamic_linear")):
        torch._dynamo.reset()
        model = how(Perceptron())
        model.layers[0].weight.scale[4] = 0
        compiled = compile_model(model)
        check(compiled, model, X)
        assert kinds(compiled, X)[kind] == 2
