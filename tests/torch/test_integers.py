"""Integers, booleans and rows that integers choose, as layers: exactly what eager gives."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.torch.straight import Straight
from tests.torch.told import computed_by_host

INF = float("inf")
BIG = 2**62 + 1
POSITIONS = torch.tensor([[1], [0], [3]]), torch.tensor([[2, 0, -1]])

# Inputs are reals with NaN and infinities, integers of 64 and 32 bits, and booleans. All but a row are [4, 5].
FUNCTIONS = {
    "where": lambda x, n, k, m, row: torch.where(m, x, -INF),
    "where_row": lambda x, n, k, m, row: torch.where(row > 0, x, x * 2),
    "where_nan": lambda x, n, k, m, row: torch.where(m, torch.zeros_like(x), x),
    "where_long": lambda x, n, k, m, row: torch.where(m, n, row),
    "where_mixed": lambda x, n, k, m, row: torch.where(m, n, x),
    "where_int": lambda x, n, k, m, row: torch.where(m, k, 7),
    "where_bool": lambda x, n, k, m, row: torch.where(m, n > 0, k > 0),
    "masked_fill": lambda x, n, k, m, row: x.masked_fill(m, -INF),
    "masked_fill_long": lambda x, n, k, m, row: n.masked_fill(m, -100),
    "eq": lambda x, n, k, m, row: n == row,
    "ne": lambda x, n, k, m, row: n != 0,
    "lt": lambda x, n, k, m, row: n < k,
    "le": lambda x, n, k, m, row: x <= x.flip(0),
    "gt": lambda x, n, k, m, row: n > 0.5,
    "ge": lambda x, n, k, m, row: x >= n,
    "eq_nan": lambda x, n, k, m, row: (x * 1) == (x * 1),
    "eq_bool": lambda x, n, k, m, row: m == (n > 0),
    "beyond floats": lambda x, n, k, m, row: (n * 0 + 2**24 + 1) > (row * 0 + 2**24),
    "and": lambda x, n, k, m, row: m & (n > 0),
    "or": lambda x, n, k, m, row: m | (row > 0),
    "xor": lambda x, n, k, m, row: m ^ (n > 0),
    "not": lambda x, n, k, m, row: ~m,
    "logical": lambda x, n, k, m, row: torch.logical_or(n, torch.logical_not(k)),
    "truth": lambda x, n, k, m, row: x.to(torch.bool) & n.bool(),
    "add": lambda x, n, k, m, row: n + row,
    "add_bool": lambda x, n, k, m, row: n + m,
    "sub": lambda x, n, k, m, row: 1 - n,
    "mul": lambda x, n, k, m, row: n * k,
    "mul_int": lambda x, n, k, m, row: k * 3,
    "wrap": lambda x, n, k, m, row: (n + BIG) * 4 + BIG,
    "wrap_int": lambda x, n, k, m, row: (k + 2**30) * 4,
    "neg": lambda x, n, k, m, row: -n,
    "minimum": lambda x, n, k, m, row: torch.minimum(n, torch.maximum(row, k.long())),
    "to_real": lambda x, n, k, m, row: n * 0.5 + m.float(),
    "to_long": lambda x, n, k, m, row: (n * 0.7).to(torch.int64) + m.to(torch.int64),
    "narrow": lambda x, n, k, m, row: (n + 2**33).to(torch.int32),
    "divided": lambda x, n, k, m, row: n.float() / 3,
    "cumsum": lambda x, n, k, m, row: torch.cumsum(m, 1) * m,
    "argmax": lambda x, n, k, m, row: k.argmax(0) + n.argmin(-1, keepdim=True),
    "argmax_nan": lambda x, n, k, m, row: torch.cat([x.argmax(1), (x * 1).argmin(0), (x * 2).argmin().view(1)]) + 1,
    "gather": lambda x, n, k, m, row: (
        m.gather(0, (n > 0).long()) & (k.gather(1, (row > 0).long().expand(2, 5)) > 0)[:1]
    ),
    "cumsum_first": lambda x, n, k, m, row: torch.cumsum(k, 0),
    "expand": lambda x, n, k, m, row: (row > 0).expand(4, 5) & m,
    "expand_real": lambda x, n, k, m, row: (x * 2)[:, None].expand(-1, 3, -1) + 1,
    "moved": lambda x, n, k, m, row: torch.cat([n.t(), row.view(5, 1)], 1)[1:, :].unsqueeze(0) + 1,
    "moved_bool": lambda x, n, k, m, row: ~torch.stack([m, m.flip(0)], 1).permute(2, 0, 1),
    "index": lambda x, n, k, m, row: m[torch.arange(4)[:, None, None, None], torch.arange(5)] & (row > 0),
    "index_any": lambda x, n, k, m, row: (x * 2)[POSITIONS] + 1,
    "index_pairs": lambda x, n, k, m, row: (x * 2)[torch.arange(4), -(n[:, 1] > 0).long()],
    "index_mixed": lambda x, n, k, m, row: n[(row[0] > 0).long(), torch.where(row > 0, -1, 2)] + 1,
    "index_long": lambda x, n, k, m, row: n[:, torch.tensor([3, 0])] + 1,
    "index_run": lambda x, n, k, m, row: (x * 2)[(n % 4)[:, 0]],
    "index_select": lambda x, n, k, m, row: torch.index_select(x * 2, 1, torch.where(row[0] > 0, 1, 4)),
    "causal": lambda x, n, k, m, row: torch.where(torch.ones(5, 5).tril().bool() & m[:, None, :], 0.0, -INF),
}


class Many(nn.Module):
    """All of them, each with a result of its own."""

    def __init__(self, functions):
        super().__init__()
        self.names, self.functions = list(functions), list(functions.values())
        g = torch.Generator().manual_seed(0)
        x = torch.randn(4, 5, generator=g)
        x[0, 0], x[1, 1], x[2, 2] = float("nan"), INF, -INF
        n, k = (torch.randint(-9, 9, (4, 5), dtype=t, generator=g) for t in (torch.int64, torch.int32))
        self.inputs = (x, n, k, torch.rand(4, 5, generator=g) > 0.5, torch.randint(-2, 3, (1, 5), generator=g))

    def forward(self, *inputs):
        return tuple(function(*inputs) for function in self.functions)


def exactly(ours, theirs, name):
    found = (ours.shape, ours.stride(), ours.dtype)
    assert found == (theirs.shape, theirs.stride(), theirs.dtype), name
    assert torch.equal(ours.nan_to_num(1e9), theirs.nan_to_num(1e9)), name


def test_exactly_as_the_host(states, regions):
    every = Many(FUNCTIONS)
    straight = Straight(every, min_region_size=1)
    with torch.no_grad():
        for name, ours, theirs in zip(every.names, straight(*every.inputs), every(*every.inputs), strict=True):
            exactly(ours, theirs, name)
    assert all(reason is None for reason in states()), states()
    others = {op for region in regions() for op in region.region.step_ops} | set(
        computed_by_host(straight.graph.partition.host)
    )
    assert others <= {"aten.flip.default", "aten.remainder.Scalar"}
    assert not any(region.region.declined for region in regions())


def test_an_index_of_several_that_there_is_not(compile_model, agree):
    """It is looked for in its own axis, not in the axes as one."""

    def model(x, ids):
        return (x * 2)[torch.arange(4), ids].relu() + 1

    compiled = compile_model(model, min_region_size=1)
    x, good = torch.randn(4, 5), torch.tensor([0, 4, -5, 2])
    for wrong in (5, -6):
        bad = good.clone()
        bad[1] = wrong
        for _ in range(2):
            with pytest.raises(IndexError, match="out of bounds"), torch.no_grad():
                compiled(x, bad)
            agree(compiled, model, x, good)


class Words(nn.Module):
    """Rows of two tables, then a linear layer."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.words = nn.Embedding(50, 16, padding_idx=0, dtype=dtype)
        self.places = nn.Embedding(20, 16, dtype=dtype)
        self.linear = nn.Linear(16, 8, dtype=dtype)

    def forward(self, ids):
        return self.linear(F.relu(self.words(ids) + self.places(torch.arange(ids.shape[1]))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_of_a_table(dtype, dynamic, compile_model, agree, regions):
    model = Words(dtype)
    compiled = compile_model(model, dynamic=dynamic)
    for length in (7, 7, 9):
        ids = torch.randint(0, 50, (2, length))
        agree(compiled, model, ids, tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    agree(compiled, model, ids.int(), tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    for wrong in (50, -1, 2**40):
        bad = ids.clone()
        bad[1, 3] = wrong
        with pytest.raises(IndexError, match="out of range"), torch.no_grad():
            compiled(bad)
        agree(compiled, model, ids, tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    assert not any(region.region.steps for region in regions())


def test_a_table_is_not_copied(compile_model, regions):
    model = Words()
    compiled = compile_model(model)
    with torch.no_grad():
        compiled(torch.zeros(1, 3, dtype=torch.long))
    (region,) = regions()
    ((state,),) = ([shaped.net_stats for shaped in region.shaped.values()],)
    assert state["packed_bytes"] < 50 * 16 * 4


def test_a_table_that_is_changed(compile_model, agree):
    model = Words()
    compiled, ids = compile_model(model), torch.randint(0, 50, (2, 7))
    agree(compiled, model, ids)
    with torch.no_grad():
        model.words.weight.mul_(2)
    agree(compiled, model, ids)


class Masked(nn.Module):
    """Scores of positions that a mask and their order leave, as transformers spell them."""

    def __init__(self):
        super().__init__()
        self.words = Words()

    def forward(self, ids, mask):
        batch, length = ids.shape
        rows, places = torch.arange(batch), torch.arange(length)
        seen = mask.bool()[rows[:, None, None, None], places]
        seen = seen & (places <= places[:, None])
        x = self.words(ids)
        scores = x @ x.transpose(1, 2)
        low = torch.finfo(scores.dtype).min
        return torch.softmax(scores + torch.where(seen.expand(batch, 1, length, length), 0.0, low)[:, 0], -1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_follows_from_sizes_is_constant(dynamic, compile_model, agree, regions):
    """No step, and one region: ranges and their comparisons are known once sizes are."""
    model = Masked()
    compiled = compile_model(model, dynamic=dynamic)
    for batch, length in ((2, 7), (2, 7), (3, 9), (2, 5)):
        mask = (torch.rand(batch, length) > 0.3).long()
        mask[:, 0] = 1
        agree(compiled, model, torch.randint(0, 50, (batch, length)), mask)
    assert len(regions()) == (1 if dynamic else 3)
    assert not any(region.region.steps or region.region.declined for region in regions())
