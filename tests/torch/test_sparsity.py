"""What is told of zeros in a model's weights."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torchao.quantization import Int8WeightOnlyConfig, quantize_

import softneuro
from softneuro.report.sparsity import Measured, Sparsity, look_at
from softneuro.torch_backend import explain, load, sparsity
from tests.torch.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("no_grad")


def by_name(found):
    return {layer.name: layer for layer in found.layers}


def pruned():
    model = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.Flatten()).eval()
    model.append(nn.Linear(32 * 36, 8))
    prune.l1_unstructured(model[0], "weight", 0.9)
    model[2].weight[:16, :16] = model[2].weight[16:, 16:] = 0
    model[4].weight[::2, ::2] = -0.0
    model[4].weight[1::2, 1::2] = 0
    return model


def test_zeros_and_patterns_need_no_input():
    found = sparsity(pruned())
    rows = by_name(found)
    assert [*rows] == ["0", "2", "4"]
    assert rows["0"].zeros == pytest.approx(0.9, abs=1e-3)
    assert (rows["0"].type, rows["0"].shape, rows["0"].pattern) == ("Conv2d", (32, 8, 3, 3), "")
    assert (rows["2"].zeros, rows["2"].pattern) == (0.5, "16x1")
    assert (rows["4"].zeros, rows["4"].pattern) == (0.5, "2:4")
    sizes = np.array([32 * 8 * 9, 32 * 32 * 9, 8 * 32 * 36])
    assert found.zeros == pytest.approx(sizes @ [0.9, 0.5, 0.5] / sizes.sum(), abs=1e-3)
    assert found.plan_s is None
    assert "2:4" in str(found)


@pytest.mark.parametrize("how", ["module", "compiled", "load"])
def test_whatever_holds_the_model(compile_model, how):
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).eval(), torch.randn(2, 64)
    model[0].weight[:32] = 0
    given = {"module": lambda: model, "compiled": lambda: compile_model(model),
             "load": lambda: load(torch.export.export(model, (x,)), **OPTIONS)}[how]()  # fmt: skip
    (layer,) = sparsity(given).layers
    assert (layer.name, layer.zeros) == ("0", 0.5)


def test_an_exported_program_with_masks():
    model, x = pruned(), torch.randn(1, 8, 8, 8)
    fast = load(torch.export.export(model, (x,)), **OPTIONS)
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)
    model[0].weight_mask[0] = 0
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)
    found = by_name(sparsity(fast))
    assert found.keys() == {"0", "2", "4"}
    assert found["0"].zeros == pytest.approx(float((model[0].weight == 0).float().mean()))


def test_measured_with_inputs():
    model = pruned()
    found = sparsity(model, torch.randn(1, 8, 8, 8), time_budget_s=2, never_worse=False)
    for layer in found.layers:
        assert 0 < layer.dense_s < 1
    assert 0 < found.plan_s <= found.dense_s * 1.1 < 1  # what it saves of memory has a price
    assert "with it" in str(found)
    # Zeros of other plans are of no interest: the same model, and nothing is measured any more.
    assert by_name(sparsity(model, torch.randn(1, 8, 8, 8), tune="cached", never_worse=False)).keys() == {"0", "2", "4"}


def test_without_costs_no_gain():
    found = sparsity(pruned(), torch.randn(1, 8, 8, 8), **OPTIONS)
    assert found.plan_s is None
    assert all(layer.dense_s is None for layer in found.layers)


def test_times_of_a_layer_that_runs_twice_add_up():
    measured = Measured()
    row = {"name": "a", "measured": True, "dense_s": 0.25, "sparse_s": None}
    measured.add(0.5, 0.25, [row, {**row, "sparse_s": 0.125}])
    found = measured.report([look_at("a", "Linear", np.zeros((2, 2), np.float32))])
    assert (found.layers[0].dense_s, found.layers[0].sparse_s) == (0.5, 0.125)
    assert (found.dense_s, found.plan_s) == (0.5, 0.25)
    measured.add(0, 0.25, [])  # of one plan nothing is known
    assert measured.report([]) == Sparsity([])


def test_halves_and_quantized_weights():
    for dtype in torch.float16, torch.bfloat16:
        model = nn.Linear(64, 64).to(dtype)
        model.weight[:, 48:] = -0.0
        assert sparsity(model).layers[0].zeros == 0.25
    model = nn.Sequential(nn.Linear(64, 64))
    model[0].weight[:16] = 0
    model[0].weight[16:].clamp_(min=0.1)
    quantize_(model, Int8WeightOnlyConfig())
    assert sparsity(model).layers[0].zeros == 0.25


def test_of_quantized_values_the_zero_point_is_zero():
    stored = np.random.default_rng(0).integers(128, 255, (32, 64)).astype(np.uint8)
    stored[:, ::2] = 127
    grid = {"scale": 0.1, "zero_point": 127, "least": 0, "most": 255}
    traits = softneuro._C.weight_traits((stored, grid))
    assert (traits["zeros"], traits["n_of_m"]) == (0.5, (2, 4))
    assert "2:4" in traits["pattern"]


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_csc", "to_sparse"])
def test_sparse_layouts_are_the_hosts(layout):
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()).eval()
    weight = getattr(model[0].weight.relu(), layout)()
    model[0].weight = nn.Parameter(weight, requires_grad=False)
    x = torch.randn(4, 32)
    rows = by_name(sparsity(model))
    assert rows["0"].zeros == pytest.approx(float((weight.to_dense() == 0).float().mean()))
    assert str(weight.layout).removeprefix("torch.") in rows["0"].note
    if layout == "to_sparse":
        return  # torch has no linear layer for it
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    assert torch.equal(compiled(x), model(x))
    fast = load(torch.export.export(model, (x,)), **OPTIONS)
    torch.testing.assert_close(fast(x), model(x))
    text = explain(fast, x)
    assert "a tensor has the layout sparse_cs" in text
    model[0].weight.values().mul_(2)
    torch.testing.assert_close(fast(x), model(x))


def test_three_dimensional_convolutions_are_the_hosts(compile_model, caplog):
    caplog.set_level("INFO", logger="softneuro.torch_backend")
    model, x = nn.Sequential(nn.Conv3d(2, 4, 3), nn.ReLU()).eval(), torch.randn(1, 2, 5, 5, 5)
    torch.testing.assert_close(compile_model(model)(x), model(x))
    assert "a convolution of rank 5 is not supported" in caplog.text


def test_routines_that_use_zeros_are_timed_apart():
    model, x = nn.Sequential(nn.Linear(512, 512), nn.ReLU()).eval(), torch.randn(1, 512)
    model[0].weight.mul_(torch.rand(512, 512) > 0.95)
    found = sparsity(model, x, time_budget_s=2)
    assert 0 < found.layers[0].sparse_s < 1
    assert found.plan_s <= found.dense_s * 1.1
    assert "ms" in str(found).split("\n")[1]


@pytest.mark.parametrize("never_worse", [True, False])
def test_a_plan_made_for_zeros_that_are_gone(compile_model, agree, never_worse):
    model, x = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).eval(), torch.randn(1, 512)
    compiled = compile_model(model, tune="profile", time_budget_s=1, never_worse=never_worse)
    kept = model[0].weight.clone()
    for _ in range(2):
        for layer in model[0], model[2]:
            layer.weight.mul_(torch.rand(512, 512) > 0.95)
        agree(compiled, model, x, tolerance=1e-4, nets=False)
        for layer in model[0], model[2]:
            layer.weight.copy_(kept)
        agree(compiled, model, x, tolerance=1e-4, nets=False)
