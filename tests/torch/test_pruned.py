"""Pruned models: masks that are still there, masks that were removed, weights whose zeros come and go."""

import copy

import pytest
import torch
from torch import nn
from torch.ao.pruning import WeightNormSparsifier
from torch.nn.utils import prune
from torchao.sparsity import WandaSparsifier

from softneuro.torch_backend import load, refresh
from softneuro.torch_backend.call.kept import KeptOutputs
from tests.torch.conftest import OPTIONS

pytestmark = pytest.mark.usefixtures("no_grad")


def small():
    layers = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Linear(16 * 64, 12)]
    return nn.Sequential(*layers).eval()


def masked(zeros=0.9):
    model = small()
    for layer in model[0], model[2], model[4]:
        prune.l1_unstructured(layer, "weight", zeros)
    return model


@pytest.fixture
def x():
    return torch.randn(2, 8, 10, 10)


@pytest.fixture
def products(monkeypatch):
    """How often what follows from weights alone was computed for a graph's outputs."""
    counted = []

    def compute(self, weights, plain=KeptOutputs._compute):
        counted.append(len(weights))
        return plain(self, weights)

    monkeypatch.setattr(KeptOutputs, "_compute", compute)
    return counted


def test_a_mask_costs_no_product_per_call(compile_model, agree, x, products, regions):
    model = masked()
    compiled = compile_model(model)
    agree(compiled, model, x)
    kept = torch._C._data_address(model[0].weight)
    for _ in range(3):
        compiled(x)
        assert torch.equal(model[0].weight, model[0].weight_orig * model[0].weight_mask)
    compiled(x)
    assert len(products) == 1
    (region,) = regions()
    assert region.core.hits
    assert torch._C._data_address(model[0].weight) != kept  # eager's own, which its call has set
    first = model[0].weight
    compiled(x)
    assert model[0].weight is not first
    assert torch._C._data_address(model[0].weight) == torch._C._data_address(first)
    first.fill_(7)
    assert torch.equal(model[0].weight, model[0].weight_orig * model[0].weight_mask)


def weight_in_place(model):
    model[0].weight_orig.mul_(2)


def mask_in_place(model):
    model[2].weight_mask[:4] = 0


def data_in_place(model):
    model[0].weight_orig.data.mul_(2)


def mask_replaced(model):
    model[2].weight_mask = torch.ones_like(model[2].weight_mask)


def loaded(model):
    torch.manual_seed(5)
    model.load_state_dict(masked(0.5).state_dict())


def product_written_to(model):
    model[4].weight.zero_()


def pruned_further(model):
    prune.random_unstructured(model[0], "weight", 0.5)


def refreshed(model):
    model[4].weight_mask.numpy()[3, 5:900] = 0  # which nothing shows
    refresh(model)


CHANGES = [
    weight_in_place,
    mask_in_place,
    data_in_place,
    mask_replaced,
    loaded,
    product_written_to,
    pruned_further,
    refreshed,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_masked_weights_stay_fresh(compile_model, agree, x, change):
    model = masked()
    compiled = compile_model(model)
    agree(compiled, model, x)
    compiled(x)
    change(model)
    twin = copy.deepcopy(model)
    agree(compiled, twin, x)
    for layer in 0, 2, 4:
        assert torch.equal(model[layer].weight, twin[layer].weight)


def test_the_layers_weights_are_the_products(compile_model, x, weights_of):
    model = masked()
    compile_model(model)(x)
    zeros = [(value == 0).mean() for value in weights_of if value.ndim > 1]
    assert zeros == pytest.approx([0.9] * 3, abs=0.01)


def test_two_models_of_one_class_keep_their_own(compile_model, agree, x, products):
    models = [masked(), masked(0.5)]
    for _ in range(3):
        for model in models:
            compiled = compile_model(model)
            agree(compiled, copy.deepcopy(model), x)
            assert torch.equal(model[0].weight, model[0].weight_orig * model[0].weight_mask)
    assert len(products) <= 6


def test_removed_masks(compile_model, agree, x):
    model = masked()
    compiled = compile_model(model)
    compiled(x)
    for layer in model[0], model[2], model[4]:
        prune.remove(layer, "weight")
    agree(compiled, model, x)


def test_masks_under_inference_mode(compile_model, x):
    model = masked()
    compiled = compile_model(model)
    expected = model(x)
    with torch.inference_mode():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-5)


def test_a_model_that_returns_a_product_of_weights(compile_model):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.mask = nn.Linear(8, 8), nn.Parameter(torch.rand(8, 8))

        def forward(self, x):
            weight = self.layer.weight * self.mask
            return nn.functional.linear(x, weight, self.layer.bias).relu(), weight, weight.t()

    model, x = Both(), torch.randn(3, 8)
    compiled = compile_model(model)
    first, second = compiled(x), compiled(x)
    expected = model(x)
    first[1].zero_()  # a result of the caller's own
    for ours, theirs in zip(second, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert compiled(x)[1].equal(expected[1])


def test_what_torchao_prunes(compile_model, agree, x, weights_of):
    model = small()
    sparsifier = WandaSparsifier(0.8)
    sparsifier.prepare(model, [{"tensor_fqn": "4.weight"}])
    model(x)  # it looks at activations
    sparsifier.step()
    sparsifier.squash_mask()
    agree(compile_model(model), model, x)
    assert any((value == 0).mean() > 0.7 for value in weights_of if value.shape == model[4].weight.shape)


def test_masks_of_sparsifiers(compile_model, agree, x):
    model = small()
    sparsifier = WeightNormSparsifier(sparsity_level=0.8)
    sparsifier.prepare(model, [{"tensor_fqn": "4.weight"}])
    sparsifier.step()
    assert (model[4].weight == 0).float().mean() > 0.7
    compiled = compile_model(model, fullgraph=True)
    agree(compiled, model, x)
    model[4].parametrizations.weight.original.mul_(2)
    agree(compiled, model, x)
    model[4].parametrizations.weight[0].mask[3:].zero_()
    agree(compiled, model, x)
    sparsifier.squash_mask()
    agree(compiled, model, x)


@pytest.mark.parametrize("how", ["torch.compile", "load"])
def test_zeros_come_and_go(agree, compile_model, x, how):
    model = small()
    ours = compile_model(model) if how == "torch.compile" else load(torch.export.export(model, (x,)), **OPTIONS)
    agree(ours, model, x)
    for layer in model[0], model[4]:
        before = layer.weight.clone()
        layer.weight.mul_(torch.rand_like(layer.weight) > 0.9)
        agree(ours, model, x)
        agree(ours, model, x)
        layer.weight.copy_(before)
        agree(ours, model, x)
        layer.weight.mul_(-0.0)
        agree(ours, model, x)
        layer.weight.copy_(before)


def test_a_pruned_models_plan_is_its_own(compile_model, agree, x, regions):
    model = small()
    pruned = copy.deepcopy(model)
    for layer in pruned[0], pruned[4]:
        layer.weight.mul_(torch.rand_like(layer.weight) > 0.9)
    carried = []
    for one in model, pruned:
        known = regions()
        torch._dynamo.reset()
        agree(compile_model(one), one, x)
        carried += [shaped.plan.carried for r in regions() if r not in known for shaped in r.shaped.values()]
    assert carried == [False] * 2


def test_another_pattern_waits_for_no_plan(compile_model, agree, x, regions):
    """There is a net at once: by a new plan where that is cheap enough, else by the one of before."""
    model = small()
    compiled = compile_model(model, never_worse=True)
    agree(compiled, model, x)
    for layer in model[0], model[4]:
        layer.weight.mul_(torch.rand_like(layer.weight) > 0.9)
    agree(compiled, model, x)
    (region,) = regions()
    (shaped,) = region.shaped.values()
    assert shaped.plan is not None
    assert shaped.host is None
