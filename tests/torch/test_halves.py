"""Models of two-byte reals, autocast and mixtures: the host's types at the borders, float32 within."""

import copy
import gc

import pytest
import torch
from torch import nn

import softneuro
from softneuro.error_measure import measure_error
from softneuro.torch_backend import explain, registry, tune
from softneuro.torch_backend.compile.ops.reals import numbers
from tests.torch.conftest import small

HALVES = [torch.bfloat16, torch.float16]
dtypes = pytest.mark.parametrize("dtype", HALVES)


class Mixed(nn.Module):
    """Float32 around a part in another type, and a sum of both."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1).to(dtype)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        y = self.first(x)
        return self.norm(y + self.second(y.to(self.dtype)).float()), self.second(y.to(self.dtype))


def exact(model, *inputs):
    """The same computed without rounding to halves, in float64."""
    with torch.no_grad():
        return copy.deepcopy(model).double()(*(x.double() for x in inputs))


@pytest.fixture
def no_worse(states):
    """Runs compiled and eager model: types and strides as the host's, errors no larger, every region by its net."""

    def check(compiled, model, truth, *inputs):
        with torch.no_grad():
            results, expected = compiled(*inputs), model(*inputs)
        if isinstance(results, torch.Tensor):
            results, expected, truth = (results,), (expected,), (truth,)
        for ours, theirs, right in zip(results, expected, truth, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.stride() == theirs.stride()
            found = measure_error(numbers(ours), numbers(theirs), numbers(right))
            assert found.within(1e-5), found
        reasons = states()
        assert reasons
        assert all(reason is None for reason in reasons), reasons

    return check


@dtypes
def test_a_model_of_halves(dtype, compile_model, no_worse, entries):
    model = small().to(dtype)
    x = torch.randn(2, 3, 12, 12, dtype=dtype)
    compiled = compile_model(model)
    for _ in range(3):  # prepared, found, found without torch's dispatcher
        no_worse(compiled, model, exact(model, x), x)
    assert entries() == 1


@dtypes
def test_autocast(dtype, compile_model, no_worse):
    """Weights are float32 and stay what they are: nothing is rounded but the output."""
    model = small()
    compiled, x = compile_model(model), torch.randn(2, 3, 12, 12)
    with torch.autocast("cpu", dtype):
        no_worse(compiled, model, exact(model, x), x)
        with torch.no_grad():
            assert compiled(x).dtype == dtype
    with torch.no_grad():
        assert compiled(x).dtype == torch.float32
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
        with torch.autocast("cpu", dtype):
            assert compiled(x).dtype == dtype


@dtypes
def test_mixtures(dtype, compile_model, no_worse):
    model, x = Mixed(dtype).eval(), torch.randn(1, 3, 12, 12)
    same = Mixed(torch.float64).double().eval()
    same.load_state_dict(model.state_dict())
    with torch.no_grad():
        truth = (
            same.norm(same.first(x.double()) + same.second(same.first(x.double()))),
            same.second(same.first(x.double())),
        )
    no_worse(compile_model(model), model, truth, x)


@dtypes
def test_conversions_within_are_nothing(dtype, compile_model):
    """A net of float32 borders whatever its inner types: exact where the host has rounded four times."""

    def function(x):
        return torch.relu(torch.relu(x.to(dtype)).float().to(dtype) * 3).float()

    x = torch.randn(64) + 5
    with torch.no_grad():
        assert torch.equal(compile_model(function)(x), 3 * x)


@dtypes
def test_every_half_at_the_border(dtype, compile_model):
    """All 65536 in and out as the host has them: denormal, infinite, not a number, and beyond the type's range."""
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype)

    def function(x):
        return x * 2, torch.relu(x)

    with torch.no_grad():
        results, expected = compile_model(function)(bits), function(bits)
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.dtype == dtype
        assert torch.equal(ours.isnan(), theirs.isnan())
        same = ours.view(torch.uint16).to(torch.int32) == theirs.view(torch.uint16).to(torch.int32)
        assert bool((same | theirs.isnan()).all())


def test_float16_overflows_at_borders_only(compile_model):
    """What is too large for float16 becomes infinite where it leaves, and not before."""

    def function(x):
        return (x * 30000) / 30000, x * 30000

    x = torch.tensor([1.0, 3.0, -4.0], dtype=torch.float16)
    with torch.no_grad():
        inner, outer = compile_model(function)(x)
        assert torch.equal(inner, x)  # the host has infinities here
        assert torch.equal(outer, function(x)[1])
    assert outer.isinf().any()


@dtypes
def test_weights_are_read_where_they_are(dtype, compile_model, no_worse):
    """Changed in place, replaced, loaded: the next call sees it; nothing else means a preparation."""
    model = small().to(dtype)
    compiled, x = compile_model(model), torch.randn(2, 3, 12, 12, dtype=dtype)
    no_worse(compiled, model, exact(model, x), x)
    changes = [
        lambda: model[0].weight.data.mul_(2),
        lambda: model[0].bias.data.__setitem__(0, 3.0),  # past the version counter, a weight of sixteen bytes
        lambda: setattr(model[3], "weight", nn.Parameter(torch.randn_like(model[3].weight))),
        lambda: model[1].running_mean.numpy(force=True) if dtype == torch.float16 else None,
        lambda: model.load_state_dict(
            {k: v + 1 if v.is_floating_point() else v for k, v in model.state_dict().items()}
        ),
    ]
    for change in changes:
        change()
        no_worse(compiled, model, exact(model, x), x)


@dtypes
def test_statistics_of_halves_are_compared_whole(dtype, compile_model, no_worse):
    """Training changes them without a change of version."""
    model = nn.Sequential(nn.Conv2d(3, 200, 1), nn.BatchNorm2d(200)).to(dtype).eval()
    compiled, x = compile_model(model), torch.randn(2, 3, 4, 4, dtype=dtype)
    no_worse(compiled, model, exact(model, x), x)
    memory = model[1].running_mean.view(torch.uint16).numpy()
    memory[77] = 0x4000
    no_worse(compiled, model, exact(model, x), x)


def test_types_of_one_model_do_not_meet(compile_model, no_worse, entries):
    """Three types of one model in one process and one cache, the first of them called again."""
    model = small()
    x = torch.randn(2, 3, 12, 12)
    kinds = [(copy.deepcopy(model).to(dtype), x.to(dtype)) for dtype in (torch.float32, *HALVES)]
    compiled = [compile_model(kind) for kind, _ in kinds]
    for _ in range(2):
        for run, (kind, image) in zip(compiled, kinds, strict=True):
            no_worse(run, kind, exact(kind, image), image)
    assert entries() == 3


@dtypes
def test_verdicts_know_the_hosts_error(dtype, compile_model, no_worse, states):
    """A judge that took the host for the truth would find an error a hundred times above max_error."""
    model = small().to(dtype)
    x = torch.randn(2, 3, 48, 48, dtype=dtype)
    with torch.no_grad():
        compile_model(model, tune="profile", never_worse=True, time_budget_s=1)(x)
    (shaped,) = registry.all_regions()[-1].shaped.values()
    assert shaped.verdict is not None
    assert shaped.verdict.error <= 1e-4


@dtypes
def test_a_plan_file(dtype, tmp_path, compile_model, no_worse):
    """Made by one model of halves, taken by the next; a float32 model of the same file gets a plan of its own."""
    path, model = tmp_path / "plan.txt", small()
    x = torch.randn(2, 3, 12, 12)
    for _ in range(2):
        for kind in (model, copy.deepcopy(model).to(dtype)):
            image = x.to(next(kind.parameters()).dtype)
            no_worse(compile_model(kind, plan=str(path)), kind, exact(kind, image), image)
            torch._dynamo.reset()
    text = path.read_text()
    assert text.count(f"cpu:{str(dtype).removeprefix('torch.')}:nchw cpu:float32:nchw") >= 1
    assert text.count("conv2d/") == 4


@dtypes
def test_tuned_and_explained(dtype, compile_model, capsys):
    model, x = small().to(dtype), torch.randn(2, 3, 12, 12, dtype=dtype)
    plan = tune(model, x, never_worse=False, time_budget_s=2)
    assert plan.layers
    text = explain(model, x, tune="cached", never_worse=False)
    assert f"inputs 2x3x12x12 {str(dtype).removeprefix('torch.')}, " in text
    assert text in capsys.readouterr().out


@dtypes
def test_exported_programs(dtype, no_worse):
    from softneuro.torch_backend import load

    model, x = small().to(dtype), torch.randn(2, 3, 12, 12, dtype=dtype)
    with torch.no_grad():
        loaded = load(torch.export.export(model, (x,)), never_worse=False, tune="off")
    no_worse(loaded, model, exact(model, x), x)
    assert loaded(x.float().to(dtype)).dtype == dtype


@dtypes
def test_channels_last_halves(dtype, compile_model, no_worse):
    model = small().to(dtype)
    x = torch.randn(2, 3, 12, 12, dtype=dtype).to(memory_format=torch.channels_last)
    no_worse(compile_model(model), model, exact(model, x), x)


@dtypes
def test_inductor_as_the_host(dtype, compile_model, no_worse):
    model = nn.Sequential(*small()[:3]).to(dtype)

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return torch.erfinv(self.inner(x).clamp(-0.5, 0.5))

    around, x = Around().eval(), torch.randn(1, 3, 8, 8, dtype=dtype)
    compiled = compile_model(around, host="inductor")
    with torch.no_grad():
        result, expected = compiled(x), around(x)
    assert result.dtype == dtype
    assert measure_error(numbers(result), numbers(expected), numbers(exact(around, x))).within(1e-5)


@dtypes
def test_a_model_without_a_float32_copy(dtype, compile_model):
    """Its weights in halves, the packing in float32, and nothing else that is as large."""

    def run(width):
        with torch.no_grad():
            model = nn.Sequential(nn.Linear(width, width), nn.ReLU()).to(dtype)
            compiled, x = compile_model(model), torch.randn(64, width, dtype=dtype)
            before = resident()
            compiled(x)
        return resident() - before, model, compiled

    run(8)  # what the first compilation loads
    gc.collect()
    grown, model, _ = run(8192)  # far larger than what a process gains beside it
    packed = sum(shaped.net_stats["packed_bytes"] for shaped in registry.all_regions()[-1].shaped.values())
    copy_bytes = 4 * model[0].weight.numel()
    assert packed > 0.9 * copy_bytes
    assert grown < packed + 0.6 * copy_bytes


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_numbers_of_types_agree_with_the_core():
    """The op's numbers are read by borders.py."""
    from softneuro.torch_backend.compile.ops.borders import TYPES, borders_of

    softneuro.torch_backend.ops.load()
    tensors = [
        *(torch.zeros(2, 3, dtype=dtype) for dtype in TYPES),
        torch.zeros(()),
        torch.zeros(2, 3, 4, 5, dtype=torch.float16).to(memory_format=torch.channels_last),
        torch.zeros(2, 5, 3).transpose(1, 2),
        torch.zeros(4, 2, 3, 5).transpose(0, 1),  # neither: it is copied
        torch.zeros(2, 3, 4, 5, dtype=torch.int32).to(memory_format=torch.channels_last),  # nets reorder reals alone
    ]
    signature = torch.ops.softneuro.region_signature(tensors, [7])
    borders = borders_of(signature, len(tensors))
    assert [border.schema for border in borders] == [
        *(f"cpu:{str(dtype).removeprefix('torch.')}:nchw" for dtype in TYPES),
        "cpu:float32:nchw", "cpu:float16:nhwc", "cpu:float32:nhwc", "cpu:float32:nchw", "cpu:int32:nchw",
    ]  # fmt: skip
    assert [border.shape for border in borders] == [tuple(t.shape) for t in tensors]
    assert (signature[0], signature[-1]) == (torch.get_num_threads(), 7)
    for dtype in (torch.float64, torch.int16, torch.complex64):
        assert torch.ops.softneuro.region_signature([torch.zeros(2, dtype=dtype)], [])[1] >> 8 == 0xFF
