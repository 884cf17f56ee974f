"""Images whose channels come last are handed over as they lie."""

import copy

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain, load, registry
from tests.torch.conftest import small

LAST = {"memory_format": torch.channels_last}


def copies(call):
    """The host's copies while it runs."""
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    names = {event.name for event in profile.events()}
    assert any(name.startswith("softneuro::") for name in names)
    return names & {"aten::contiguous", "aten::clone", "aten::copy_"}


@pytest.mark.parametrize("weights_last", [False, True])
def test_results_and_strides_are_the_hosts(weights_last, compile_model, agree):
    model, x = small(), torch.randn(2, 3, 12, 12)
    contiguous = compile_model(copy.deepcopy(model))
    if weights_last:
        model.to(**LAST)
    compiled = compile_model(model)
    for _ in range(3):  # prepared, found, found without torch's dispatcher
        agree(compiled, model, x.to(**LAST))
    with torch.no_grad():
        torch.testing.assert_close(compiled(x.to(**LAST)), contiguous(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nothing_is_copied(dtype, compile_model):
    model, x = small().to(dtype), torch.randn(2, 3, 12, 12, dtype=dtype).to(**LAST)
    compiled = compile_model(model)
    with torch.no_grad():
        compiled(x)
    for _ in range(2):
        assert not copies(lambda: compiled(x))


def test_both_layouts_of_one_program(entries):
    """Exported for one, called with either and with what is neither, whose memory is copied."""
    model, x = small(), torch.randn(4, 3, 12, 12)
    with torch.no_grad():
        program = load(torch.export.export(model, (x,)), never_worse=False, tune="off")
        for image in (x, x.to(**LAST), x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)):
            for _ in range(3):
                torch.testing.assert_close(program(image), model(x), atol=1e-5, rtol=1e-5)
    assert entries() == 2
    assert not copies(lambda: program(x))
    assert not copies(lambda: program(x.to(**LAST))) - {"aten::copy_"}  # which made the argument


def test_routines_read_the_image_where_it_lies(compile_model, states):
    """Pooling has routines for both layouts, and nothing is converted from one to the other."""
    x = torch.randn(1, 16, 8, 8)
    compiled = compile_model(nn.Sequential(nn.MaxPool2d(2), nn.ReLU(), nn.MaxPool2d(2)))
    for image, layout in ((x, "nchw"), (x.to(**LAST), "nhwc")):
        text = explain(compiled, image)
        assert f"inputs 1x16x8x8{'' if layout == 'nchw' else ' channels last'}, " in text
        plan = next(iter(registry.all_regions()[-1].shaped.values())).plan
        assert plan.adapts == []
        assert all(layer.descriptor.split("/")[1] == f"cpu:float32:{layout}" for layer in plan.layers)


def test_pooled_images_stay_in_the_region(compile_model, agree, states):
    """After a mean over a channels-last image the host states strides anew, which is nothing to be done."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).eval()
    agree(compile_model(model), model, torch.randn(2, 3, 9, 9).to(**LAST))
    assert len(states()) == 1


def test_other_views_of_memory_stay_with_the_host(compile_model, agree):
    def function(x):
        return torch.relu(x).as_strided((2, 2), (1, 2)) * 2

    x = torch.randn(3, 4)
    agree(compile_model(function), function, x, nets=False)


@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 3, 4, 5, 6)])
def test_other_ranks(shape, compile_model, agree):
    """Channels of signals and volumes may come last, too."""
    x = torch.randn(*shape).movedim(1, -1).contiguous().movedim(-1, 1)

    def function(x):
        return torch.relu(x) + 1

    agree(compile_model(function), function, x)


W = torch.randn(4, 4, 3, 3)
ROWS = torch.zeros(2, 4, 6, 8, dtype=torch.long)
# What may be made of a channels-last image x and a row-major one r. After each comes an op that a region has.
MOVES = {
    "roll": lambda x, r: x.roll(1, 2),
    "roll of two axes": lambda x, r: x.roll((1, -1), (2, 1)),
    "roll of all": lambda x, r: x.roll(3),
    "roll, then a view": lambda x, r: x.roll(1, 2).flatten(1),
    "flip": lambda x, r: x.flip(2),
    "index_select": lambda x, r: x.index_select(1, torch.tensor([2, 0])),
    "index": lambda x, r: x[:, :, torch.tensor([2, 0])],
    "gather": lambda x, r: x.gather(2, ROWS),
    "gather by an image": lambda x, r: x.gather(2, ROWS.to(**LAST)),
    "cat": lambda x, r: torch.cat([x, x * 2], 1),
    "cat of both": lambda x, r: torch.cat([x, r], 1),
    "cat of both, reversed": lambda x, r: torch.cat([r, x], 1),
    "nearest": lambda x, r: nn.functional.interpolate(x, scale_factor=2),
    "linear": lambda x, r: nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "cubic": lambda x, r: nn.functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "pad": lambda x, r: nn.functional.pad(x, (1, 1, 1, 1)),
    "reflect": lambda x, r: nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "circular": lambda x, r: nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda x, r: nn.functional.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x, r: nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x, r: nn.functional.channel_shuffle(x, 2),
    "where": lambda x, r: torch.where(x > 0, x, r),
    "where of both": lambda x, r: torch.where(r > 0, r, x),
    "clone": lambda x, r: x.clone(),
    "contiguous": lambda x, r: x.contiguous(),
    "repeat": lambda x, r: x.repeat(1, 2, 1, 1),
    "masked_fill": lambda x, r: x.masked_fill(r > 0, 0.0),
    "cumsum": lambda x, r: x.cumsum(1),
    "cumprod": lambda x, r: x.cumprod(1),
    "argmax": lambda x, r: x.argmax(1),
    "sort": lambda x, r: x.sort(1)[0],
    "topk": lambda x, r: x.topk(2, 1)[0],
    "softmax": lambda x, r: x.softmax(1),
    "max_unpool2d": lambda x, r: nn.functional.max_unpool2d(*nn.functional.max_pool2d(x, 2, return_indices=True), 2),
    "logsigmoid": lambda x, r: nn.functional.logsigmoid(x),
    "grid_sample": lambda x, r: nn.functional.grid_sample(x, r[:, :2].movedim(1, -1), align_corners=False),
    "conv2d": lambda x, r: nn.functional.conv2d(x, W),
    "sum": lambda x, r: r + x,
    "part": lambda x, r: x[:, 1:3],
    "reshape": lambda x, r: x.reshape(2, 2, 2, 6, 8),
    "layer_norm": lambda x, r: nn.functional.layer_norm(x, (8,)),
    "scatter": lambda x, r: x.scatter(2, ROWS, r),
    "index_put": lambda x, r: torch.index_put(x, (torch.tensor([0, 1]),), r),
    "addcmul": lambda x, r: torch.addcmul(r, x, x),
}


@pytest.mark.parametrize("dynamic", [False, True])
def test_ops_keep_the_hosts_order_of_memory(dynamic, compile_model, no_grad):
    """Torch's fake kernels err for some; what follows lies as it does in eager mode."""

    def function(x, r):
        return [move(x, r) * 2 + 1 for move in MOVES.values()]

    x, r = torch.randn(2, 4, 6, 8).to(**LAST), torch.randn(2, 4, 6, 8)
    results = compile_model(function, dynamic=dynamic)(x, r)
    for name, ours, theirs in zip(MOVES, results, function(x, r), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)
        assert [s for s, n in zip(ours.stride(), ours.shape, strict=True) if n > 1] == [
            s for s, n in zip(theirs.stride(), theirs.shape, strict=True) if n > 1
        ], name
