"""What `explain` says of cuts between regions, and of names that would break its lines."""

import re

import pytest
import torch
from torch import nn

from softneuro.torch_backend import explain, load, tune
from tests.torch.conftest import OPTIONS


class Cut(nn.Module):
    """Convolutions around what no region takes."""

    def __init__(self, odd, parts):
        super().__init__()
        self.odd = odd
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 1)) for _ in range(parts)
        )

    def forward(self, x):
        return self.odd(x, *self.parts)


def in_a_row(x, first, second, third):
    return third(second(first(x).double().cumsum(1).float()).erfinv().double().float())


def around(x, first, second):
    """The second part would follow the first, but waits for an op as well."""
    x = first(x)
    return second(x + torch.fft.fft(x, dim=1).real)


def beside(x, first, second, third):
    """Nothing lies between the first and the third part, and yet they are two regions."""
    y = first(x)
    return third(y + second(torch.fft.fft(first(y), dim=1).real))


CUTS = {
    "in a row": (in_a_row, 3, [["aten._to_copy.default", "aten.cumsum.default"], ["aten.erfinv.default"]]),
    "around": (around, 2, [["aten._fft_r2c.default"]]),
    "beside": (beside, 3, [["aten._fft_r2c.default"]]),
}


def _cuts(text):
    return re.findall(r"^ *between (\S+) and (\S+): (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("door", ["compiled", "exported"])
@pytest.mark.parametrize("name", CUTS)
def test_every_cut_names_its_ops(name, door):
    odd, parts, expected = CUTS[name]
    model, x = Cut(odd, parts).eval(), torch.randn(1, 4, 8, 8)
    text = (
        explain(load(torch.export.export(model, (x,)), **OPTIONS), x)
        if door == "exported"
        else explain(model, x, **OPTIONS)
    )
    handles = re.findall(r"^ *region (\S+):", text, re.MULTILINE)
    cuts = _cuts(text)
    assert len(handles) == len(cuts) + 1
    assert len(cuts) == len(expected)
    assert {handle for cut in cuts for handle in cut[:2]} == set(handles)
    for (_, _, ops), wanted in zip(cuts, expected, strict=True):
        assert all(op in ops for op in wanted), (ops, wanted)


def test_no_cuts(capsys):
    model, x = Cut(lambda x, part: part(x).erfinv(), 1).eval(), torch.randn(1, 4, 8, 8)
    assert not _cuts(explain(model, x, **OPTIONS))


ODD_NAMES = ["a\x85b", "a\u2028b", "a\nb", "a\x1b[31mb", "\u202eb", "é漢", "a]b['c", "=#;:|,x%sx{}"]


@pytest.mark.parametrize("door", ["compiled", "exported"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_leave_lines_whole(name, door, tmp_path):
    x = torch.randn(1, 3, 8, 8)
    model = nn.Sequential()
    for place, module in enumerate((nn.Conv2d(3, 4, 3), nn.Softsign(), nn.Conv2d(4, 4, 3), nn.ReLU())):
        model.add_module(f"{name}{place}", module)
    options = {**OPTIONS, "tune": "profile", "time_budget_s": 0.1, "plan": str(tmp_path / "plan"), "min_region_size": 1}
    if door == "exported":
        if "\n" in name:
            pytest.skip("such a program has no code")
        program = torch.export.export(model.eval(), (x,))
        texts = [explain(load(program, **options), x) for _ in range(2)]
        plan = tune(load(program), x)
    else:
        texts = [explain(model.eval(), x, **options) for _ in range(2)]
        plan = tune(model, x)
    for text in (*texts, str(plan)):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert text.splitlines() == text.split("\n")
    assert "é" not in name or "é漢0" in texts[0]


def test_every_op_of_the_host_is_named():
    """Without a region, too: ops of other libraries, graphs in ops, numbers, what weights give."""
    with torch.library._scoped_library("softneuro_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice", torch.empty_like, "Meta")

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(4, 4))

            def forward(self, x):
                x = torch.ops.softneuro_test.twice(x)
                x = torch.cond(x.double().sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
                values, _ = x.topk(2)
                return torch.linalg.solve(self.weight.exp(), values.reshape(-1, 4).t()) * (x.shape[0] + 1)

        compiled = torch.compile(Model().eval(), backend="softneuro", dynamic=True, options=OPTIONS)
        text = explain(compiled, torch.randn(6, 8))
    assert text.startswith("no supported region")
    lines = dict(re.findall(r"^    (\S+) x\d+ \([^)]*\): (.*)$", text, re.MULTILINE))
    reasons = {
        "softneuro_test.twice.default": "softneuro has no such layer",
        "cond": "softneuro has no such layer",
        "aten.topk.default": "softneuro has no such layer",
        "operator.add": "it computes a number, not a tensor",
        "aten.exp.default": "it follows from weights alone, and only the host reads it",
    }
    assert {op: lines.get(op) for op in reasons} == reasons
    assert "operator.getitem" not in lines  # it is a part of the op before it


def test_fast_path_that_stays():
    """Torch has one op for an encoder's layer; where no region takes it, it is named."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).double().eval()
    text = explain(layer, torch.randn(2, 5, 8, dtype=torch.float64), **OPTIONS)
    assert "aten._transformer_encoder_layer_fwd.default x1" in text
    assert "float64" in text
