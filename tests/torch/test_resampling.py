"""Resampling stays whole: a layer of a region, or the host's own kernel, never torch's gathers and arithmetic."""

import pytest
import torch
from torch import nn
from torch._C import DispatchKey
from torch.nn import functional as F

from softneuro import torch_backend
from softneuro.torch_backend import load
from tests.torch.conftest import OPTIONS

LAYERS = {
    "nearest": {"scale_factor": 2},
    "nearest size": {"size": (13, 5)},
    "bilinear": {"scale_factor": 2, "mode": "bilinear"},
    "bilinear corners": {"size": (17, 19), "mode": "bilinear", "align_corners": True},
}
HOST = {
    "nearest-exact": {"scale_factor": 2, "mode": "nearest-exact"},
    "bicubic": {"scale_factor": 1.5, "mode": "bicubic"},
}


class Decoder(nn.Module):
    def __init__(self, resampling):
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3, padding=1)
        self.after = nn.Conv2d(8, 4, 3, padding=1)
        self.resampling = resampling

    def forward(self, x):
        return self.after(F.interpolate(self.before(x).relu(), **self.resampling))


@pytest.mark.parametrize("door", ["compiled", "dynamic", "exported"])
@pytest.mark.parametrize("name", [*LAYERS, *HOST])
def test_stays_whole(name, door, compile_model, agree):
    model = Decoder({**LAYERS, **HOST}[name]).eval()
    x = torch.randn(2, 3, 9, 8)
    if door == "exported":
        ours = load(torch.export.export(model, (x,)), min_region_size=1, **OPTIONS)
    else:
        ours = compile_model(model, dynamic=door == "dynamic", min_region_size=1)
    agree(ours, model, x)
    if door == "dynamic":
        agree(ours, model, torch.randn(1, 3, 11, 6))
    report = str(torch_backend.explain(ours, x))
    _, _, host = report.partition("on the host:")
    if name in LAYERS:
        assert "graph 0: 1 region(s)" in report
        assert not host
    else:
        ops = [line.split()[0] for line in host.splitlines() if line.strip()]
        assert len(ops) == 1
        assert "upsample" in ops[0]


def test_torch_keeps_its_decompositions(compile_model):
    op = torch.ops.aten.upsample_bilinear2d.vec
    kernel = op.py_kernels[DispatchKey.Autograd]
    with torch.no_grad():
        compile_model(Decoder(LAYERS["bilinear"]))(torch.randn(1, 3, 8, 8))
    assert op.py_kernels[DispatchKey.Autograd] is kernel
