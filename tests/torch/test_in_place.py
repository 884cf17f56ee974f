"""Caches that a model writes to: changed where they are, and only where they are written to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from softneuro.error_measure import relative_error
from softneuro.torch_backend.compile.tracing import in_place
from tests.torch.conftest import OPTIONS

ROWS = 16


class Cached(nn.Module):
    """Attention to keys and values so far, as Hugging Face's static cache has it."""

    def __init__(self, how="index_copy_", reads_before=False):
        super().__init__()
        self.how, self.reads_before = how, reads_before
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x, keys, values, start):
        q, k, v = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
        places = torch.arange(x.shape[1]) + start
        before = keys.sum() if self.reads_before else 0
        for cache, new in ((keys, k), (values, v)):
            if self.how == "index_copy_":
                cache.index_copy_(2, places, new)
            else:
                cache[:, :, places] = new
        seen = torch.arange(ROWS) <= places[:, None]
        made = nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return self.out(made.transpose(1, 2).flatten(2)) + before


@pytest.fixture
def written(monkeypatch):
    """How many inputs each graph writes to in place."""
    counts = []
    original = in_place.write_in_place

    def counted(*arguments):
        counts.append(original(*arguments))
        return counts[-1]

    monkeypatch.setattr("softneuro.torch_backend.backend.write_in_place", counted)
    return counts


def caches():
    return torch.zeros(1, 2, ROWS, 4), torch.zeros(1, 2, ROWS, 4)


@pytest.mark.parametrize("how", ["index_copy_", "index_put_"])
def test_decoding(how, written, no_grad):
    model = Cached(how).eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    (keys, values), expected = caches(), caches()
    start = 0
    for rows in (5, 1, 1, 3):
        x = torch.randn(1, rows, 8)
        wanted = model(x, *expected, torch.tensor(start))
        memory = keys.data_ptr(), values.data_ptr()
        got = compiled(x, keys, values, torch.tensor(start))
        assert relative_error(got.numpy(), wanted.numpy()) < 1e-5
        assert memory == (keys.data_ptr(), values.data_ptr())
        for ours, theirs in ((keys, expected[0]), (values, expected[1])):
            torch.testing.assert_close(ours, theirs)
        start += rows
    assert set(written) == {2}


def test_what_reads_the_old_values_gets_them(written, no_grad):
    model = Cached(reads_before=True).eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given, expected = [cache + 1 for cache in caches()], [cache + 1 for cache in caches()]
    x = torch.randn(1, 2, 8)
    wanted = model(x, *expected, torch.tensor(3))
    got = compiled(x, *given, torch.tensor(3))
    assert relative_error(got.numpy(), wanted.numpy()) < 1e-5
    torch.testing.assert_close(given, expected)
    assert written == [1]


def test_other_strides(no_grad):
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given = [cache.transpose(2, 3).contiguous().transpose(2, 3) for cache in caches()]
    expected = caches()
    x = torch.randn(1, 2, 8)
    wanted = model(x, *expected, torch.tensor(3))
    assert relative_error(compiled(x, *given, torch.tensor(3)).numpy(), wanted.numpy()) < 1e-5
    torch.testing.assert_close(given, list(expected))


def test_a_place_beyond_the_cache_raises(no_grad):
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    compiled(torch.randn(1, 2, 8), *caches(), torch.tensor(3))
    with pytest.raises(IndexError):
        compiled(torch.randn(1, 2, 8), *caches(), torch.tensor(ROWS - 1))
