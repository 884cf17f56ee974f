"""Integers that a region computes as reals: which are known to be whole, and which stay with the host."""

import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from softneuro.torch_backend.compile.partitioning.whole_numbers import Whole, find_whole
from tests.torch.straight import Straight
from tests.torch.told import host_computes

pytestmark = pytest.mark.usefixtures("no_grad")
X = 300 * torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
BYTES = torch.randint(-128, 128, (6, 5), dtype=torch.int8, generator=torch.Generator().manual_seed(1))


def steps(x, least=-128, most=127):
    return x.round().clamp(least, most)


FACTS = {
    "reals": (lambda x: x, None),
    "rounded": (lambda x: x.round(), Whole()),
    "clamped": (lambda x: x.round().clamp(-128, 127), Whole(-128, 127)),
    "clamped to less": (lambda x: steps(x).clamp(max=3), Whole(-128, 3)),
    "clamped to none": (lambda x: steps(x).clamp(200, 300), Whole(200, 200)),
    "clamped to a fraction": (lambda x: x.round().clamp(-0.5, 3), None),
    "clamped alone": (lambda x: x.clamp(-3, 3), None),
    "sum": (lambda x: steps(x) + steps(x, 0, 9), Whole(-128, 136)),
    "sum with a fraction": (lambda x: steps(x) + 0.5, None),
    "difference": (lambda x: 5 - steps(x), Whole(-122, 133)),
    "weighted sum": (lambda x: torch.add(steps(x), steps(x), alpha=2), None),
    "product": (lambda x: steps(x) * steps(x, -3, 2), Whole(-381, 384)),
    "open product": (lambda x: x.round() * 0, Whole()),
    "added up": (lambda x: steps(x).sum(1), Whole(-768, 762)),
    "greatest": (lambda x: torch.maximum(steps(x), x.round()).amin(1), Whole(-128, math.inf)),
    "moved": (lambda x: steps(x).view(6, 4).t().clone(), Whole(-128, 127)),
    "zeros": (torch.zeros_like, Whole(0, 0)),
    "of bytes": (lambda x: steps(x).to(torch.int8).to(torch.int32) + 128, Whole(0, 255)),
    "bytes that wrap": (lambda x: steps(x).to(torch.int8) + 1, None),
    "back to reals": (lambda x: steps(x).to(torch.int8).float() * 0.5, None),
    "truncated": (lambda x: x.to(torch.int32), None),
    "beyond the type": (lambda x: steps(x).to(torch.uint8), None),
    "beyond what reals have": (lambda x: steps(x, -(2**24), 2**24 + 1).to(torch.int32), None),
    "as large as reals have them": (lambda x: steps(x, -(2**24), 2**24).to(torch.int32), Whole(-(2**24), 2**24)),
    "open integers": (lambda x: x.round().to(torch.int32), None),
    "of bytes by bytes": (lambda x: torch._int_mm(steps(x).to(torch.int8), BYTES), Whole(-(6 * 128**2), 6 * 128**2)),
    "indices": (lambda x: x.argmax(1).to(torch.int32), None),
}


@pytest.mark.parametrize("name", FACTS)
def test_what_is_known(name):
    function, expected = FACTS[name]
    graph = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(X).graph
    (result,) = graph.output_node().all_input_nodes
    assert find_whole(graph, set()).get(result) == expected


class Bytes(torch.nn.Module):
    """A function of x and of a weight of bytes."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Buffer(BYTES)

    def forward(self, x):
        return self.function(x, self.weight)


TAKEN = {
    "bytes and back": lambda x, w: steps(x).to(torch.int8).float() * 0.5,
    "raised bytes": lambda x, w: (steps(x).to(torch.int8).to(torch.int32) + 128).to(torch.uint8).float(),
    "bytes added up": lambda x, w: steps(x).to(torch.int8).sum(1, dtype=torch.int32).float() * 0.5,
    "moved bytes": lambda x, w: steps(x).to(torch.int8).t().reshape(3, 8).float() + 1,
    "bytes by bytes": lambda x, w: torch._int_mm(steps(x).to(torch.int8), w).float() * 0.25,
    "sums less a constant": lambda x, w: (torch._int_mm(steps(x).to(torch.int8), w) - w.sum(0).int()).float(),
    "bytes by reals": lambda x, w: steps(x).to(torch.int8) * x.sigmoid(),
    "reals by bytes": lambda x, w: x @ w.float() * 0.5,
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name):
    model = Bytes(TAKEN[name])
    compiled = Straight(model)
    torch.testing.assert_close(compiled(X), model(X), rtol=1e-5, atol=0)
    assert not host_computes(compiled.told())
    assert len(compiled.graph.regions) == 1


def both(x, _):
    q = steps(x).to(torch.int8)
    return q, q.float() * 0.5


LEFT = {
    "not rounded": (lambda x, w: x.clamp(-9, 9).to(torch.int8).float() * 0.5, "its dtype is int8"),
    "not clamped": (lambda x, w: x.round().to(torch.int32).float() * 0.5, "its dtype is int32"),
    "beyond the type": (lambda x, w: (steps(x, -300, 300) * 0.4).round().to(torch.int8).float(), "its dtype is int8"),
    "wrapped": (lambda x, w: (steps(x).to(torch.int8) + 1).float() * 0.5, "its dtype is int8"),
    "a result": (lambda x, w: steps(x).to(torch.int8), "its bytes are a result"),
    "a result, too": (both, "its bytes are a result"),
    "indices": (lambda x, w: w[steps(x, 0, 5).to(torch.int32)[:, 0]].float(), "its bytes are read by aten.select.int"),
    "bits": (lambda x, w: (steps(x).to(torch.int8) & 7).float() * 0.5, "its bytes are read by aten.bitwise_and"),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_to_the_host(name):
    function, reason = LEFT[name]
    model = Bytes(lambda x, w: function(x * 0.5, w))
    x = X.clamp(-200, 200)
    compiled = Straight(model)
    results, expected = compiled(x), model(x)
    for ours, theirs in zip(*((r,) if torch.is_tensor(r) else r for r in (results, expected)), strict=True):
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs)
    assert reason in compiled.told()


def test_open_sizes():
    """Filled tensors of a shape that is open are constants once it is known."""
    model = Bytes(
        lambda x, w: (steps(x).to(torch.int8) + torch.zeros_like(x[:, :1]).to(torch.int8)).float() @ w.float()
    )
    compiled = Straight(model, dynamic=True)
    for rows in (4, 7):
        x = 100 * torch.randn(rows, 6)
        torch.testing.assert_close(compiled(x), model(x))
    assert not host_computes(compiled.told())


def test_outputs_that_are_in_steps():
    def outputs(x, _):
        y = 9 * x.tanh()
        q = steps(y)
        return y, q + 1, q.to(torch.int8).float() * 0.5, y.round() * 2

    compiled = Straight(Bytes(outputs))
    compiled(X)
    (region,) = compiled.graph.regions
    assert sorted(region.region.outputs_in_steps) == [False, False, True, True]
