"""torch.ops.softneuro.attention, and scaled dot product attention in compiled models, against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from softneuro.error_measure import relative_error
from softneuro.torch_backend import explain, ops
from tests.torch.conftest import OPTIONS

ops.load()
attention = torch.ops.softneuro.attention
B, H, M, N, D = 2, 4, 9, 11, 16


def operands(*, heads=H, groups=H, rows=M, keys=N, depth=D, width=D):
    return torch.randn(B, heads, rows, depth), torch.randn(B, groups, keys, depth), torch.randn(B, groups, keys, width)


def masks(rows=M, keys=N):
    kept = torch.rand(B, 1, rows, keys) > 0.4
    kept[:, :, 3] = False  # a row that sees nothing
    added = torch.randn(rows, keys)
    added[2] = -torch.inf
    added[4] = torch.finfo(torch.float32).min
    return {
        "none": {},
        "causal": {"is_causal": True},
        "kept": {"attn_mask": kept},
        "kept by key": {"attn_mask": torch.rand(B, 1, 1, keys) > 0.4},
        "added": {"attn_mask": added},
        "added by head": {"attn_mask": torch.randn(B, H, rows, keys)},
        "scale": {"scale": 0.7},
    }


def close(actual, expected, bound=2e-6):
    assert actual.shape == expected.shape
    assert relative_error(actual.numpy(), expected.numpy()) <= bound


@pytest.mark.parametrize("name", masks())
@pytest.mark.parametrize("groups", [H, 2, 1])
def test_op(name, groups):
    q, k, v = operands(groups=groups, width=24 if groups == 2 else D)
    given = {**masks()[name], "enable_gqa": groups != H}
    close(attention(q, k, v, **given), scaled_dot_product_attention(q, k, v, **given))


@pytest.mark.parametrize("rank", [2, 3])
def test_other_ranks(rank):
    q, k, v = (x[(0, 0)[: 4 - rank]] for x in operands())
    close(attention(q, k, v), scaled_dot_product_attention(q, k, v))


@pytest.mark.parametrize("keys", [1, 127, 128, 129, 400])
def test_blocks_of_keys(keys):
    q, k, v = operands(keys=keys, rows=keys)
    close(attention(q, k, v, is_causal=True), scaled_dot_product_attention(q, k, v, is_causal=True))


def test_other_strides():
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in operands())
    close(attention(q, k, v), scaled_dot_product_attention(q, k, v))


def test_keys_beyond_a_cache_are_not_read():
    """What a mask leaves out in whole blocks may be anything."""
    q, k, v = operands(keys=600)
    kept = torch.arange(600) < 200
    expected = scaled_dot_product_attention(q, k[:, :, :200], v[:, :, :200])
    k[:, :, 256:], v[:, :, 256:] = torch.nan, torch.nan
    close(attention(q, k, v, attn_mask=kept.expand(1, 1, 1, 600)), expected)


def test_nothing_to_attend_to():
    q, k, v = operands(keys=0)
    assert torch.equal(attention(q, k, v), torch.zeros(B, H, M, D))
    assert attention(q[:, :, :0], *operands()[1:]).shape == (B, H, 0, D)


def test_special_values():
    """A row with NaN or an infinite score is NaN, and no other is."""
    for value in (torch.nan, torch.inf):
        q, k, v = operands()
        q[0, 1, 2, 3] = value
        got = attention(q, k, v)
        assert got[0, 1, 2].isnan().all()
        assert got.isnan().sum() == D


def test_bad_input():
    q, k, v = operands()
    wrong = [
        ((q, k[:, :3], v[:, :3]), {"enable_gqa": True}, "no multiple"),
        ((q, k[:, :2], v[:, :2]), {}, "enable_gqa=True"),
        ((q, k[..., :8], v), {}, "length"),
        ((q, k, v[:, :, :5]), {}, "number of rows"),
        ((q, k, v), {"attn_mask": torch.zeros(3, N)}, "does not broadcast"),
        ((q, k, v), {"attn_mask": torch.zeros(M, N, dtype=torch.int64)}, "bool or float32"),
        ((q, k, v), {"attn_mask": torch.zeros(M, N), "is_causal": True}, "either causal"),
        ((q, k, v), {"scale": float("nan")}, "scale must be finite"),
        ((q.double(), k, v), {}, "float32"),
        ((q[None], k[None], v[None]), {}, "rank 4"),
        ((q, k, v), {"routine": "fastest"}, "unknown routine"),
    ]
    for given, named, reason in wrong:
        with pytest.raises(RuntimeError, match=reason):
            attention(*given, **named)


def test_opcheck():
    q, k, v = (x.requires_grad_() for x in operands())
    torch.library.opcheck(attention.default, (q, k, v))
    torch.library.opcheck(attention.default, (q, k, v, torch.ones(M, N, dtype=torch.bool), False, 0.3, False, ""))


class Attends(torch.nn.Module):
    def __init__(self, **given):
        super().__init__()
        self.given = given
        self.out = torch.nn.Linear(H * D, 8)

    def forward(self, q, k, v, mask=None):
        made = scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.given)
        return self.out(made.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("name", masks())
def test_compiled(name, no_grad):
    given = dict(masks()[name])
    mask = given.pop("attn_mask", None)
    model = Attends(**given).eval()
    q, k, v = operands()
    expected = model(q, k, v, mask)
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    close(compiled(q, k, v, mask), expected, 5e-6)
    text = explain(compiled, q, k, v, mask)
    assert "step(s) of the host" not in str(text)


def test_other_width(no_grad):
    """Torch spells it out; rows that see nothing are zero."""
    q, k, v = operands(width=24)
    mask = masks()["kept"]["attn_mask"]
    attend = torch.compile(scaled_dot_product_attention, backend="softneuro", options={**OPTIONS, "min_region_size": 1})
    close(attend(q, k, v, mask), scaled_dot_product_attention(q, k, v, mask))
