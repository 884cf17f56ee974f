"""Resampling stays whole: a layer of a region, or the host's own kernel, never torch's gathers and arithmetic."""

import re

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F

from softneuro import torch_backend
from softneuro.torch_backend import load
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from tests.torch.conftest import OPTIONS
from tests.torch.straight import Every, Straight
from tests.torch.told import computed_by_host, computing

LAYERS = {
    "nearest": {"scale_factor": 2},
    "nearest size": {"size": (13, 5)},
    "nearest of a shape": {"size": 2},
    "bilinear": {"scale_factor": 2, "mode": "bilinear"},
    "bilinear corners": {"size": (17, 19), "mode": "bilinear", "align_corners": True},
    "bilinear of a shape": {"size": 3, "mode": "bilinear"},
}
HOST = {
    "nearest-exact": {"scale_factor": 2, "mode": "nearest-exact"},
    "bicubic": {"scale_factor": 1.5, "mode": "bicubic"},
    "bicubic of a shape": {"size": 2, "mode": "bicubic"},
}


class Decoder(nn.Module):
    def __init__(self, resampling):
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3, padding=1)
        self.after = nn.Conv2d(8, 4, 3, padding=1)
        self.resampling = resampling

    def forward(self, x):
        arguments = dict(self.resampling)
        if isinstance(arguments.get("size"), int):  # so many times the input's
            arguments["size"] = [arguments["size"] * n for n in x.shape[2:]]
        return self.after(F.interpolate(self.before(x).relu(), **arguments))


def ops_of_the_host(graph):
    """Those beside the regions, and those within."""
    regions = [region.region for region in graph.regions]
    declined = {str(node.target) for region in regions for node in region.declined}
    return {*computed_by_host(graph.partition.host), *declined, *(op for region in regions for op in region.step_ops)}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kinds", [LAYERS, HOST], ids=["layers", "host"])
def test_stays_whole(kinds, dynamic, all_agree):
    every = Every({name: (Decoder(kind).eval(), torch.randn(2, 3, 9, 8)) for name, kind in kinds.items()})
    compiled = Straight(every, dynamic, min_region_size=1)
    for shape in [(2, 3, 9, 8), (2, 3, 11, 6), (2, 3, 12, 17)][: 3 if dynamic else 1]:
        all_agree(compiled, every, [torch.randn(shape) for _ in kinds], steps=kinds is HOST)
    upsampled = {"aten._upsample_nearest_exact2d.default", "aten.upsample_bicubic2d.default"}
    assert ops_of_the_host(compiled.graph) == (upsampled if kinds is HOST else set())


@pytest.mark.parametrize("door", ["dynamic", "exported", "exported dynamic"])
@pytest.mark.parametrize("name", ["bilinear of a shape", "bicubic of a shape"])
def test_stays_whole_through_doors(name, door, compile_model, agree):
    model = Decoder({**LAYERS, **HOST}[name]).eval()
    x = torch.randn(2, 3, 9, 8)
    counters.clear()
    if door.startswith("exported"):
        axes = {2: torch.export.Dim("h", min=4, max=64), 3: torch.export.Dim("w", min=4, max=64)}
        program = torch.export.export(model, (x,), dynamic_shapes=({} if door == "exported" else axes,))
        ours = load(program, min_region_size=1, **OPTIONS)
    else:
        ours = compile_model(model, dynamic=True, min_region_size=1)
    agree(ours, model, x)
    if "dynamic" in door:
        for shape in [(2, 3, 11, 6), (2, 3, 12, 17)]:
            agree(ours, model, torch.randn(shape))
        assert counters["stats"]["unique_graphs"] <= 1
    told = "\n".join(computing(torch_backend.explain(ours, x)))
    ops = set(re.findall(r"aten\.\S+(?= x\d)", told))
    assert len(ops) == (name in HOST)
    assert all("upsample" in op for op in ops)


def test_dynamic_batch_of_a_program(agree):
    class Reshaped(Decoder):
        def forward(self, x):
            y = super().forward(x)
            return y.reshape(y.shape[0] * 4, -1) + 1

    model, x = Reshaped(LAYERS["bilinear"]).eval(), torch.randn(2, 3, 9, 8)
    axes = {0: torch.export.Dim("batch", min=1, max=16)}
    ours = load(torch.export.export(model, (x,), dynamic_shapes=(axes,)), min_region_size=1, **OPTIONS)
    for batch in (2, 3, 5):
        agree(ours, model, torch.randn(batch, 3, 9, 8))


def test_inductor_host(compile_model, agree):
    model = Decoder(HOST["bicubic"]).eval()
    agree(compile_model(model, min_region_size=1, host="inductor"), model, torch.randn(1, 3, 8, 8))


def test_torch_keeps_its_decompositions():
    def kernels():
        packets = [
            getattr(torch.ops.aten, name) for name in dir(torch.ops.aten) if "upsample" in name or "shrink" in name
        ]
        overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
        return {str(op): dict(op.py_kernels) for op in overloads}

    def fail(module, inputs):
        assert kernels() != before
        raise ArithmeticError

    class Outputs(Decoder):
        def forward(self, x):
            return (super().forward(x),)

    module = torch.fx.symbolic_trace(Outputs(LAYERS["bilinear"]).eval())
    before = kernels()
    with torch.no_grad(), pytest.raises(ArithmeticError):
        trace_inference(module, [torch.randn(1, 3, 8, 8)], fail)
    assert kernels() == before
