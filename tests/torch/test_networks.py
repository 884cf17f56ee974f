"""Whole networks, small images."""

import copy
import importlib.util
import re

import pytest
import torch

from benchmarks import models
from softneuro.error_measure import relative_error

NETWORKS = ["mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5"]
MORE = ["resnet18", "mobilenet_v2", "resnet50", "vgg11", "densenet121", "googlenet", "efficientnet_b0", "convnext_tiny"]
if importlib.util.find_spec("torchvision") is None:
    pytest.skip("torchvision is not installed", allow_module_level=True)


@torch.no_grad()
def tolerance(model, x):
    """Untrained networks magnify rounding errors: as many times the error of eager itself."""
    exact = copy.deepcopy(model).double()(x.double())
    return max(1e-5, 5 * relative_error(model(x), exact))


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name, compile_model, agree, states):
    model, x = models.build(name, size=64, batch=2)
    agree(compile_model(model), model, x, tolerance=tolerance(model, x))
    assert len(states()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_more_networks(name, compile_model, agree):
    model, x = models.build(name, size=96)
    agree(compile_model(model), model, x, tolerance=tolerance(model, x))


def test_tuned_network_from_a_warm_database(compile_model, agree):
    import softneuro.torch_backend as door

    model, x = models.build("squeezenet1_1", size=64)
    plan = door.tune(model, x, never_worse=False, time_budget_s=5)
    assert plan.layers
    assert plan.predicted_s >= plan.lower_bound_s > 0
    torch._dynamo.reset()
    agree(compile_model(model, tune="cached"), model, x, tolerance=1e-4)
    again = door.tune(model, x, never_worse=False, tune="cached")
    assert [layer.descriptor for layer in again.layers] == [layer.descriptor for layer in plan.layers]


def test_explain(compile_model, capsys):
    import softneuro.torch_backend as door

    model, x = models.build("squeezenet1_1", size=64)

    def function(x):
        return model(torch.erfinv(x.clamp(-0.9, 0.9)))

    text = door.explain(function, x, tune="off", never_worse=False)
    shown = re.search(r"peak (\d+\.\d) MiB .*; arena (\d+\.\d) MiB with workspaces, of \d+\.\d MiB of blobs", text)
    packed = re.search(r"packed weights (\d+\.\d) MiB", text)
    assert float(shown[1]) == pytest.approx(float(shown[2]) + float(packed[1]), abs=0.3)  # and a small image
    assert text in capsys.readouterr().out
    assert "aten.erfinv.default" in text
    assert "softneuro has no such layer" in text
    assert "features.3.squeeze" in text
    assert "conv2d/cpu:float32" in text


def test_a_dry_run_tells_what_would_be_taken(capsys, monkeypatch):
    import softneuro.torch_backend as door
    from softneuro.torch_backend.call.runtime import RegionRuntime

    model, x = models.build("squeezenet1_1", size=64)
    monkeypatch.setattr(RegionRuntime, "__init__", lambda *_, **__: pytest.fail("a region was made"))
    for _ in range(2):  # the second time Dynamo has it
        text = door.explain(lambda x: torch.erfinv(model(x).clamp(-0.9, 0.9)), x, dry_run=True)
        assert "aten.convolution.default x26" in text
        assert "aten.erfinv.default x1 (erfinv): softneuro has no such layer" in text
        assert text in capsys.readouterr().out
    monkeypatch.undo()
    compiled = torch.compile(model, backend="softneuro", options={"tune": "off"})
    loaded = door.load(torch.export.export(model, (x,)), tune="off")
    for made in (compiled, loaded):
        assert "aten.convolution.default x26" in door.explain(made, x, dry_run=True)
        assert "conv2d/cpu:float32" in door.explain(made, x)  # it is as it was


def test_explain_tells_what_was_measured():
    import softneuro.torch_backend as door

    model, x = models.build("squeezenet1_1", size=64)
    by_rules = door.explain(model, x, tune="off", never_worse=False)
    assert re.search(r"      \d+ of \d+ layers not measured; packed", by_rules)
    assert "predicted" not in by_rules
    measured = door.explain(model, x, never_worse=False, time_budget_s=60)
    few = re.search(r"      (\d+) of \d+ layers not measured; packed", measured)  # forecasts, where time was short
    assert re.search(r"predicted \d+\.\d+ ms, at best \d+\.\d+ ms; packed", measured) or int(few[1]) < 5


def test_plan_file(tmp_path, compile_model, agree):
    path = tmp_path / "plan.txt"
    model, x = models.build("squeezenet1_1", size=64)
    agree(compile_model(model, plan=str(path)), model, x)
    assert "conv2d/" in path.read_text()
    torch._dynamo.reset()
    agree(compile_model(model, plan=str(path)), model, x)
    path.write_text(path.read_text()[:200])
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(Exception, match="plan"):
        compile_model(model, plan=str(path))(x)
