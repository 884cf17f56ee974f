"""Torch's ops for whole layers of a transformer are taken apart, and give what torch gives."""

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain
from tests.torch.conftest import OPTIONS

BATCH, ROWS, WIDTH, HEADS = 2, 5, 8, 2


class Attentions(nn.Module):
    """One op per case, all in one graph."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases
        shapes = {"qkv": (3 * WIDTH, WIDTH), "proj": (WIDTH, WIDTH)}
        for name, shape in shapes.items():
            self.register_buffer(f"{name}_weight", torch.randn(*shape))
            self.register_buffer(f"{name}_bias", torch.randn(shape[0]))

    def forward(self, x, *masks):
        given = (WIDTH, HEADS, self.qkv_weight, self.qkv_bias, self.proj_weight, self.proj_bias)
        results = []
        for source, mask, kind, weighted, averaged in self.cases:
            sources = (x, x, x) if source == "self" else (x, x + 1, x * 2)
            chosen = None if mask is None else masks[mask]
            found = torch._native_multi_head_attention(*sources, *given, chosen, weighted, averaged, kind)
            results += found if weighted else found[:1]
        return tuple(results)


CASES = [
    ("self", None, None, False, True),
    ("self", None, None, True, True),
    ("self", None, None, True, False),
    ("self", 0, 0, False, True),
    ("self", 0, 0, True, True),
    ("self", 1, 1, False, True),
    ("self", 1, 1, True, False),
    ("self", 2, 2, False, True),
    ("self", 2, 2, True, True),
    ("self", 3, 1, False, True),
    ("self", 3, 1, True, True),
    ("others", None, None, False, True),
    ("others", 2, 2, True, True),
]


def masks():
    """Rows and columns of scores, batch and keys, all four axes, and numbers where any but 0 drops a key."""
    by_row, by_key = torch.rand(ROWS, ROWS) > 0.6, torch.rand(BATCH, ROWS) > 0.6
    whole = torch.rand(BATCH, HEADS, ROWS, ROWS) > 0.6
    for mask in (by_row, by_key, whole):
        mask[..., 1] = False  # of every row something is left
    return by_row, by_key, whole, torch.zeros(BATCH, ROWS).masked_fill(by_key, float("-inf"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention(dtype, compile_model, agree, states):
    model, given = Attentions(CASES).to(dtype), masks()
    x = torch.randn(BATCH, ROWS, WIDTH, dtype=dtype)
    given = (*given[:3], given[3].to(dtype))
    agree(compile_model(model), model, x, *given, tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    assert states() == [None] * len(CASES)


def test_rows_that_attend_to_nothing(compile_model, states, no_grad):
    """They are no numbers, as with torch's own op."""
    cases = [case for case in CASES if case[0] == "self" and case[1] in (0, 1, 2)]
    model = Attentions(cases)
    by_row, by_key, whole, numbers = masks()
    by_row[2], by_key[1], whole[0, 1, 3] = True, True, True
    x = torch.randn(BATCH, ROWS, WIDTH)
    given = (x, by_row, by_key, whole, numbers)
    expected = model(*given)
    torch.testing.assert_close(compile_model(model)(*given), expected, equal_nan=True, rtol=1e-5, atol=1e-5)
    assert all(result.isnan().any() for result in expected)
    assert states() == [None] * len(cases)


class Encoders(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 16, activation=activation, norm_first=first, batch_first=True)
            for activation in ("relu", "gelu")
            for first in (False, True)
        )
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def forward(self, x, by_row, by_key):
        plain = tuple(layer(x) for layer in self.layers)
        masked = self.layers[0](x, src_mask=by_row), self.layers[1](x, src_key_padding_mask=by_key)
        return (*plain, *masked, self.layers[2](x, src_mask=by_row, src_key_padding_mask=by_key))


def test_encoder_layers(compile_model, agree, states):
    model, (by_row, by_key, *_) = Encoders().eval(), masks()
    by_row[0, 0] = by_key[0, 0] = False
    compiled, x = compile_model(model, dynamic=True), torch.randn(BATCH, ROWS, WIDTH)
    agree(compiled, model, x, by_row, by_key)
    assert len(states()) == 7
    agree(compiled, model, torch.randn(3, 7, WIDTH), torch.zeros(7, 7, dtype=torch.bool), torch.rand(3, 7) > 2)
    agree(compiled, model, x, by_row, by_key)


@pytest.mark.parametrize("first", [False, True])
def test_encoder_layers_give_row_major_memory(first, compile_model, agree):
    model = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, norm_first=first, batch_first=True).eval()
    agree(compile_model(model), model, torch.randn(ROWS, BATCH, WIDTH).transpose(0, 1))


def test_padded_batches():
    """In eager mode an encoder makes nested tensors of them, and zeros of what is padding."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(BATCH, ROWS, WIDTH)
    padding = torch.zeros(BATCH, ROWS, dtype=torch.bool)
    padding[1, 3:] = True
    compiled = torch.compile(encoder, backend="softneuro", options=OPTIONS)
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=padding)
        result = compiled(x, src_key_padding_mask=padding)
        torch.testing.assert_close(result[~padding], expected[~padding], rtol=1e-5, atol=1e-5)
    assert "1 graph(s) with regions" in explain(encoder, x, **OPTIONS)
