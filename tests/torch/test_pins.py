"""The options keep, fixed and max_memory through torch.compile: layers have the names of modules."""

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain

NAIVE = "conv2d/cpu:float32:nchw/naive"


class Twins(nn.Module):
    """Two regions that differ in nothing but names."""

    def __init__(self):
        super().__init__()
        self.left, self.right = (
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1)) for _ in range(2)
        )

    def forward(self, x):
        return self.right(self.left(x).double().cumsum(1).float())


def plans(regions):
    """By module, of all shapes."""
    layers = {}
    for region in regions():
        for shaped in region.shaped.values():
            for layer in shaped.plan.layers:
                layers.setdefault(layer.name, []).append(layer.descriptor)
    return layers


def test_regions_of_one_structure_have_plans_of_their_own(compile_model, agree, regions):
    model = Twins()
    compiled = compile_model(model, fixed=f"left.2={NAIVE}", keep="right*:cpu:float32:nchw")
    agree(compiled, model, torch.randn(1, 4, 6, 6))
    known = plans(regions)
    assert known["left.2"] == [NAIVE]
    assert NAIVE not in known["left.0"] + known["right.2"]
    assert all("/cpu:float32:nchw/" in one for one in known["right.0"] + known["right.2"])


def test_other_sizes_are_as_asked(compile_model, agree, regions):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
    compiled = compile_model(model, dynamic=True, fixed=f"2={NAIVE}")
    for size in (9, 12, 30):
        agree(compiled, model, torch.randn(2, 3, size, size))
    assert plans(regions)["2"] == 3 * [NAIVE]


def test_other_options_have_plans_of_their_own(compile_model, agree, regions):
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), torch.randn(1, 3, 9, 9)
    agree(compile_model(model, fixed=f"0={NAIVE}"), model, x)
    assert plans(regions)["0"] == [NAIVE]
    torch._dynamo.reset()
    agree(compile_model(model), model, x)
    assert plans(regions)["0"][-1] != NAIVE


def test_a_layer_without_a_routine_is_an_error_that_names_it(compile_model):
    compiled = compile_model(nn.Sequential(nn.Conv2d(3, 8, 3)), min_region_size=1, keep="*:bfloat16")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"layer '0': no routine reads and writes as keep="), torch.no_grad():
            compiled(torch.randn(1, 3, 9, 9))


def test_peaks_of_other_sizes_keep_to_the_limit(compile_model, agree, regions):
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(16, 4, 1))
    compiled = compile_model(model, dynamic=True, max_memory="400kB")
    for size in (16, 40):
        agree(compiled, model, torch.randn(1, 3, size, size))
    peaks = [shaped.net_stats["peak_bytes"] for region in regions() for shaped in region.shaped.values()]
    assert len(peaks) == 2
    assert all(peak <= 400_000 for peak in peaks)


def test_explain_tells_the_peak(compile_model):
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval(), torch.randn(1, 3, 9, 9)
    text = explain(model, x, tune="off", never_worse=False, max_memory="1B")
    assert "the least that was found: max_memory is below it, peak 0.0 MiB foretold" in text
