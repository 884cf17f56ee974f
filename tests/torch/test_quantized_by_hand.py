"""Quantization in forms that no flow of torch's makes, or that are wrong: right, or declined with a reason."""

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain
from tests.torch.quantized_models import LAST, ByHand, on_grid, qd
from tests.torch.straight import Straight
from tests.torch.told import host_computes

pytestmark = pytest.mark.usefixtures("no_grad")
X = torch.randn(2, 3, 9, 10, generator=torch.Generator().manual_seed(0))


def steps_off(compiled, model, x=X):
    """By how many steps of the last grid results differ."""
    return ((compiled(x) - model(x)) / LAST[0]).round().abs()


def check(compiled, model, x=X):
    off = steps_off(compiled, model, x)
    assert off.max() <= 1
    assert off.count_nonzero() <= 2


def check_whole(model, x=X, compile_model=None):
    """It is one region, which runs its net, and right. Tensors that are no parameters or buffers need Dynamo."""
    compiled = compile_model(model) if compile_model else Straight(model)
    check(compiled, model, x)
    text = explain(compiled, x) if compile_model else compiled.told()
    assert "1 region(s)" in text
    assert not host_computes(text)
    assert "softneuro runs it" in text
    return compiled


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes_of_weights(axis, in_bytes):
    check_whole(ByHand(axis=axis))
    assert in_bytes.count(True) == 2


@pytest.mark.parametrize("how", [{"zero_point": 3}, {"dtype": torch.uint8, "zero_point": 120}], ids=str)
def test_weights_in_other_forms_are_floats(how, in_bytes):
    compiled = check_whole(ByHand(**how))
    assert True not in in_bytes
    assert "in floats: the weights are not quantized" in compiled.told()


def test_weight_of_one_scale(in_bytes):
    def odd(module, x):
        weight = qd.dequantize_per_tensor(module.conv[:, :, :1, :1], 0.004, 0, -128, 127, torch.int8)
        return nn.functional.conv_transpose2d(x, weight)

    check_whole(ByHand(lambda module, x: torch.cat([odd(module, x)] * 2, 1)))
    assert in_bytes.count(True) == 3


@pytest.mark.parametrize(("axis", "kept"), [(0, True), (1, False)])
def test_moved_weights(axis, kept, in_bytes):
    """In bytes where scales then differ along one axis."""

    model = nn.Module()
    model.bytes = nn.Buffer(torch.randint(-128, 128, (2, 3, 2), dtype=torch.int8))
    model.scales = nn.Buffer(torch.rand(model.bytes.shape[axis]) * 0.01)
    model.zeros = nn.Buffer(torch.zeros_like(model.scales))

    def forward(x):
        weight = qd.dequantize_per_channel(model.bytes, model.scales, model.zeros, axis, -128, 127, torch.int8)
        return torch.relu(nn.functional.conv2d(on_grid(x, 0.05, 128), weight.view(2, 6, 1, 1)))

    model.forward = forward
    compiled, x = Straight(model), torch.randn(2, 6, 5, 4)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)
    assert in_bytes == [kept]


@pytest.mark.parametrize(
    "grid",
    [
        (0.05, -3, -128, 127, torch.int8),
        (0.05, 0, -127, 127, torch.int8),
        (0.05, 60, 0, 127, torch.uint8),
        (0.05, 20, 16, 235, torch.uint8),
        (torch.tensor(0.05), torch.tensor(4), -128, 127, torch.int8),
        (torch.tensor(0.05), torch.tensor(4), torch.tensor(-120), torch.tensor(127), torch.int8),
    ],
    ids=str,
)
def test_grids_of_activations(grid, compile_model):
    check_whole(ByHand(grid=grid), 3 * X, compile_model)


AROUND = {
    "relu before a symmetric grid": lambda module, x: on_grid(torch.relu(x - 0.5), 0.02, 0, -128, 127, torch.int8),
    "cat of unequal grids": lambda module, x: torch.cat([on_grid(x[:, :2], 0.05, 9), x[:, 2:]], 1),
    "add of unequal grids": lambda module, x: x + on_grid(x - 1, 0.05, 90),
    "mul of unequal grids": lambda module, x: x * on_grid(x - 1, 0.05, 90),
    "one grid, two readers": lambda module, x: torch.relu(x - 0.3) + nn.functional.max_pool2d(x, 3, 1, 1),
    "a grid again": lambda module, x: on_grid(on_grid(x, 0.02, 3), 0.05, 9),
}


@pytest.mark.parametrize("name", AROUND)
def test_ops_between_grids(name):
    check_whole(ByHand(AROUND[name]))


def test_an_axis_beyond_the_rank_raises_as_in_eager(compile_model):
    model = ByHand()
    model.axis = 4
    for run in (model, compile_model(model)):
        with pytest.raises(Exception, match="Expecting axis to be < 4"):
            run(X)


def test_halves(in_bytes):
    """As under autocast, where the host rounds what it hands on."""
    model = ByHand(lambda module, x: on_grid(torch.relu(layer(x.bfloat16(), module)), 0.05, 7))

    def layer(x, module):
        return nn.functional.conv2d(x, module.weight("square").bfloat16())

    model.register_buffer("square", torch.randint(-128, 128, (6, 6, 1, 1), dtype=torch.int8))
    model.square_scales, model.square_zeros = model.conv_scales, model.conv_zeros
    assert steps_off(Straight(model), model).max() <= 1
    assert in_bytes.count(True) == 3


def test_results_in_halves(compile_model, regions):
    model, grid = ByHand(), (0.25, 100, 0, 255, torch.uint8)  # that bfloat16 holds

    def in_halves(x):
        q = qd.quantize_per_tensor(model(x), *grid)
        return qd.dequantize_per_tensor(q, *grid, out_dtype=torch.bfloat16)

    result, expected = compile_model(in_halves)(X), in_halves(X)
    assert result.dtype == torch.bfloat16
    assert ((result - expected) / 0.25).abs().max() <= 1
    assert [shaped.host for (region,) in [regions()] for shaped in region.shaped.values()] == [None]


MOVES = {
    "view": lambda q: q.view(2, 6, 90).reshape(2, 6, 9, 10),
    "permute": lambda q: q.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "unsqueeze": lambda q: q.unsqueeze(2).squeeze(2),
    "clone": lambda q: q.transpose(2, 3).clone().transpose(3, 2),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_moves_of_bytes(name, dtype):
    info = torch.iinfo(dtype)
    grid = (0.02, 7, info.min, info.max, dtype)

    def odd(module, x):
        return qd.dequantize_per_tensor(MOVES[name](qd.quantize_per_tensor(x, *grid)), *grid)

    check_whole(ByHand(odd))


@pytest.mark.parametrize("change", ["stored", "scale", "zero point", "replaced"])
def test_fresh_weights(change, compile_model):
    model = ByHand()
    compiled = check_whole(model, compile_model=compile_model)
    before = compiled(X)
    if change == "stored":
        model.linear.neg_()
    elif change == "scale":
        model.linear_scales[0] *= 1.5
    elif change == "zero point":
        model.linear_zeros[0] = 40
    else:
        model.linear = model.linear.flip(0)
    check(compiled, model)
    assert not torch.equal(compiled(X), before)


def test_a_scale_of_activations_that_is_a_buffer_is_fresh():
    grid = (nn.Buffer(torch.tensor(0.05)), nn.Buffer(torch.tensor(120)), 0, 255, torch.uint8)
    model = ByHand(grid=grid)
    model.scale, model.zero = grid[:2]
    model.grid = None

    def forward(x):
        model.grid = (model.scale, model.zero, *grid[2:])
        return ByHand.forward(model, x)

    model.forward = forward
    compiled = check_whole(model)
    before = compiled(X)
    model.scale.mul_(0.1)
    check(compiled, model)
    assert not torch.equal(compiled(X), before)


def test_a_step_of_the_host_reads_reals():
    model = ByHand(lambda module, x: torch.flip(x, (3,)))
    compiled = Straight(model)
    check(compiled, model)
    text = compiled.told()
    assert "as a step: aten.flip.default" in text
    assert "softneuro runs it" in text


def other_grid(module, x):
    return qd.dequantize_per_tensor(
        qd.quantize_per_tensor(x, 0.02, 3, 0, 255, torch.uint8), 0.02, 4, 0, 255, torch.uint8
    )


def of_arithmetic(module, x):
    q = qd.quantize_per_tensor(x, 0.02, 3, 0, 255, torch.uint8)
    return qd.dequantize_per_tensor(q // 2, 0.02, 3, 0, 255, torch.uint8)


def chosen(module, x):
    scale, zero = qd.choose_qparams(x, 0, 255, 1e-4, torch.uint8)
    return on_grid(x, scale, zero)


def chosen_of_another(module, x):
    return on_grid(x, *qd.choose_qparams(2 * x, 0, 255, 1e-4, torch.uint8))


def pooled(module, x):
    q = qd.quantize_per_tensor(x, 0.02, 3, 0, 255, torch.uint8)
    return qd.dequantize_per_tensor(nn.functional.max_pool2d(q, 3, 1, 1), 0.02, 3, 0, 255, torch.uint8)


def per_channel(module, x):
    grid = (module.conv_scales, module.conv_zeros, 1, -128, 127, torch.int8)
    return qd.dequantize_per_channel(qd.quantize_per_channel(x, *grid), *grid)


DECLINED = {
    "negative scale": (lambda module, x: on_grid(x, -0.5, 3), "its scale is -0.5"),
    "scale of nan": (lambda module, x: on_grid(x, float("nan"), 3), "its scale is nan"),
    "scale that float32 has not": (lambda module, x: on_grid(x, 1e-60, 3), "its scale is 1e-60"),
    "zero point": (lambda module, x: on_grid(x, 0.1, 300), "its zero point 300 is outside 0 to 255"),
    "16 bits": (lambda module, x: on_grid(x, 0.1, 3, -999, 999, torch.int16), "its dtype is int16"),
    "computed scale": (lambda module, x: on_grid(x, x.amax() / 255, torch.tensor(0)), "its scale is not a constant"),
    "another grid": (other_grid, "takes its bytes for those of another"),
    "arithmetic": (of_arithmetic, "its bytes are read by aten.floor_divide.default"),
    "pooling of bytes": (pooled, "its bytes are read by aten.max_pool2d_with_indices.default"),
    "per channel": (per_channel, "softneuro has no such layer"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declined(name):
    odd, reason = DECLINED[name]
    model = ByHand(odd)
    compiled = Straight(model)
    check(compiled, model)
    assert reason in compiled.told()


@pytest.mark.parametrize("odd", [chosen, chosen_of_another], ids=["its own", "of another"])
def test_a_scale_of_the_run(odd):
    """It is arithmetic where no product reads what it quantizes."""
    model = ByHand(odd)
    compiled = Straight(model)
    check(compiled, model)
    assert not host_computes(compiled.told())


@pytest.mark.parametrize("where", ["activations", "weight"])
@pytest.mark.parametrize("scale", [float("nan"), -0.5, 1e-44])
def test_wrong_scales_in_tensors(where, scale, compile_model):
    """What the host makes of them."""
    model = ByHand()
    if where == "activations":
        model.grid = (torch.tensor(scale), torch.tensor(3), 0, 255, torch.uint8)
    else:
        model.conv_scales[1] = scale
    compiled = compile_model(model)
    for _ in range(2):
        check(compiled, model)


def test_bytes_at_the_rim(compile_model):
    """A Q without DQ, and a DQ of what the caller gives."""
    grid = (0.05, 128, 0, 255, torch.uint8)
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1)).eval()

    def only_q(x):
        return qd.quantize_per_tensor(layers(x), *grid)

    def only_dq(q):
        return layers(qd.dequantize_per_tensor(q, *grid))

    q = compile_model(only_q)(X)
    assert (q.int() - only_q(X).int()).abs().max() <= 1
    assert "its bytes are a result" in explain(compile_model(only_q), X)
    q = torch.randint(0, 255, (2, 3, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(compile_model(only_dq)(q), only_dq(q), rtol=1e-4, atol=1e-4)
    assert "its bytes come from no quantization" in explain(compile_model(only_dq), q)


def test_a_q_beside_the_region_stays_with_its_reader(compile_model):
    """Never is a pair cut: bytes of a region's Q that the host reads keep it with the host."""
    model = ByHand()
    grid = (0.05, 128, 0, 255, torch.uint8)

    def both(x):
        q = qd.quantize_per_tensor(x, *grid)
        return model(qd.dequantize_per_tensor(q, *grid)), q.sum()

    results, expected = compile_model(both)(X), both(X)
    assert ((results[0] - expected[0]) / LAST[0]).round().abs().max() <= 1
    assert results[1] == expected[1]


def test_special_values():
    x = X.clone()
    x[0, 0, 0, :3] = torch.tensor([float("inf"), -float("inf"), 1e30])
    check_whole(ByHand(), x)
