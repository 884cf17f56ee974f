"""The option `plan`: one file for all graphs and shapes of a model."""

import pytest
import torch
from torch import nn

import softneuro


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.plan"


@pytest.fixture
def model():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3)).eval()


def shapes(path):
    return [plan.key.shapes for plan in softneuro._C.PlanFile.load(str(path)).plans]


def test_other_shapes_are_added(path, model, compile_model, agree):
    compiled = compile_model(model, dynamic=True, plan=str(path))
    for size in (12, 20, 16):
        agree(compiled, model, torch.randn(2, 3, size, size))
    assert len(shapes(path)) == 3
    text = path.read_text()
    torch._dynamo.reset()
    compiled = compile_model(model, dynamic=True, plan=str(path))
    for size in (20, 12):
        agree(compiled, model, torch.randn(2, 3, size, size))
    assert path.read_text() == text


def test_a_loaded_plan_serves_another_shape(path, model, compile_model, agree):
    """Where nothing may be measured, the file's nearest plan counts for more than rules."""
    agree(compile_model(model, plan=str(path)), model, torch.randn(2, 3, 12, 12))
    other = "conv2d/cpu:float32:nchw/im2col_gemm_" + softneuro.available_isas()[0]
    file = softneuro._C.PlanFile.load(str(path))
    plan = file.plans[0]
    assert not plan.steps[0].descriptor.startswith(other)
    plan.steps = [_step(plan.steps[0], other), *plan.steps[1:]]
    plan.adapts = [a for a in plan.adapts if a.blob != 1]
    file.set(plan)
    file.save(str(path))
    torch._dynamo.reset()
    compiled = compile_model(model, plan=str(path), tune="cached")
    agree(compiled, model, torch.randn(2, 3, 14, 14))
    added = next(p for p in softneuro._C.PlanFile.load(str(path)).plans if "14" in p.key.shapes)
    assert added.steps[0].descriptor.startswith(other)


def _step(step, routine):
    """The step with another routine, in its first tuning."""
    weight = torch.ones(16, 3, 3, 3).numpy()
    accepting = softneuro._C.testing.accepting(
        "conv2d",
        {"padding": [1, 1, 1, 1]},
        {"weight": weight, "bias": weight[:, 0, 0, 0].copy()},
        [(2, 3, 12, 12)],
        {"activation": "relu"},
        torch.get_num_threads(),
    )
    step.descriptor = next(descriptor for descriptor in accepting if descriptor.startswith(routine))
    return step


def test_several_regions_and_models(path, model, compile_model, agree):
    def function(x):
        return model[2](torch.erfinv(model[1](model[0](x)).clamp(-0.9, 0.9).double()).float())

    for _ in range(2):
        torch._dynamo.reset()
        agree(compile_model(function, plan=str(path), min_region_size=1), function, torch.randn(1, 3, 12, 12))
        assert len(shapes(path)) == 2


def test_another_models_file_is_refused(path, model, compile_model, tmp_path):
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        compile_model(model, plan=str(path))(x)
        moved = tmp_path / "moved.plan"
        moved.write_text(path.read_text())
        other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Sigmoid())
        with pytest.raises(RuntimeError, match="holds no plan for this model"):
            compile_model(other, plan=str(moved))(x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "line"),
        (lambda text: text.replace("softneuro-plan 5", "softneuro-plan 7"), "another version"),
        (lambda text: text.replace("conv2d/cpu", "rm -rf/cpu"), "plan"),
        (lambda text: text.replace("layer 0", "layer 9999999999"), "index"),
        (lambda text: "\x00" * 5000, "torn"),
        (lambda text: "\x00\n" * 5000, "no plan"),
        (lambda text: text.replace(softneuro.cpu_id(), "intel-9-9-9"), "made on device"),
    ],
)
def test_damaged_and_foreign_files_are_refused(path, model, compile_model, change, message):
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        compile_model(model, plan=str(path))(x)
        torch._dynamo.reset()
        text = change(path.read_text())
        path.write_text(text)
        with pytest.raises(RuntimeError, match=message):
            compile_model(model, plan=str(path))(x)
    assert path.read_text() == text


def test_a_folder_or_an_unwritable_place_is_an_error(tmp_path, model, compile_model):
    x = torch.randn(1, 3, 12, 12)
    for bad in (tmp_path, tmp_path / "missing" / "a.plan"):
        torch._dynamo.reset()
        with torch.no_grad(), pytest.raises(RuntimeError, match=r"plan|file"):
            compile_model(model, plan=str(bad))(x)
