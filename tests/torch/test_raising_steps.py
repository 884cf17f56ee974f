"""What steps of the host raise, and results that are not as promised."""

import re

import numpy as np
import pytest
import torch

import softneuro
from softneuro.torch_backend import load
from softneuro.torch_backend.compile.converters.registry import aten
from softneuro.torch_backend.compile.host.host_steps import HostStep
from tests.torch.odd_ops import ODD, Odd, Placed, by_gather, by_index, by_op, by_sum


def raises_as_eager(compiled, model, *inputs):
    with torch.no_grad():
        with pytest.raises(Exception, match=r"out of") as eager:
            model(*inputs)
        with pytest.raises(eager.type, match=f"^{re.escape(str(eager.value))}$"):
            compiled(*inputs)


@pytest.mark.parametrize("take", [by_gather, by_index, by_op, by_sum])
def test_what_a_step_raises_is_what_eager_raises(take, compile_model, agree, regions, image):
    model = Placed(take)
    wrong = torch.arange(1, 9)
    compiled = compile_model(model)
    raises_as_eager(compiled, model, image, wrong)  # no net is ready yet
    for _ in range(3):
        agree(compiled, model, image, torch.randperm(8))
        raises_as_eager(compiled, model, image, wrong)
    (region,) = regions()
    assert bool(region.region.steps) == (take is by_sum)
    program = load(torch.export.export(model, (image, wrong - 1)), never_worse=False, tune="off")
    for _ in range(3):
        agree(program, model, image, torch.randperm(8))
        raises_as_eager(program, model, image, wrong)


def test_a_step_that_raises_at_the_first_call_is_judged_at_the_next(compile_model, regions, image):
    model = Placed(by_sum)
    compiled = compile_model(model, never_worse=True, tune="profile", time_budget_s=1)
    raises_as_eager(compiled, model, image, torch.arange(1, 9))
    (region,) = regions()
    (shaped,) = region.shaped.values()
    assert (shaped.host, shaped.verdict) == (None, None)
    assert region.core.nets == 0
    with torch.no_grad():
        compiled(image, torch.randperm(8))
    (shaped,) = region.shaped.values()
    assert shaped.verdict is not None


@pytest.mark.parametrize("never_worse", [False, True])
def test_a_step_that_raises_in_the_net_alone(never_worse, compile_model, monkeypatch, regions, image):
    """As one would whose result is not as promised."""
    model = Odd(ODD["cumprod"]).eval()
    compiled = compile_model(model, never_worse=never_worse, tune="profile", time_budget_s=1)
    broken = []

    def call(step, inputs, outputs):
        if broken:
            raise softneuro.Error("not as promised")
        return run(step, inputs, outputs)

    run = HostStep.__call__
    monkeypatch.setattr(HostStep, "__call__", call)
    broken += [True] if never_worse else []
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(image), model(image), rtol=1e-3, atol=1e-4)
        broken.append(True)
        for _ in range(3):
            torch.testing.assert_close(compiled(image), model(image), rtol=1e-3, atol=1e-4)
    joined = [region for region in regions() if region.region.steps]
    assert "raised" in next(iter(joined[0].shaped.values())).host


@pytest.mark.parametrize(
    ("op", "shape", "dtype"),
    [
        (aten.cumsum.default, (3, 4), torch.float32),  # written to the net's memory by the op
        (aten.cumsum.default, (3, 6), torch.float32),
        (aten.narrow_copy.default, (3, 4), torch.float32),
        (aten._to_copy.default, (3, 5), torch.int32),  # copied there
        (aten._to_copy.default, (5, 3), torch.float32),
    ],
)
def test_a_result_that_is_not_as_promised(op, shape, dtype):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(op, (x,) if op is aten._to_copy.default else (x, 1))
    if op is aten.narrow_copy.default:
        node.args = (x, 1, 0, 3)
    graph.output(node)
    values = {x: torch.empty(3, 5), node: torch.empty(shape, dtype=dtype)}
    step = HostStep([node], values, lambda _: None)
    result = np.zeros(values[node].shape, str(dtype).removeprefix("torch."))
    with pytest.raises((softneuro.Error, RuntimeError), match=r"promised|resize"):
        step([np.ones((3, 5), np.float32)], [result])
