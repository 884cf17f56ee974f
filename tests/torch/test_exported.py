"""Programs of torch.export."""

import copy
import io
import threading

import pytest
import torch
from torch import nn

import softneuro
from softneuro import torch_backend
from softneuro.torch_backend import load
from softneuro.torch_backend.compile.tracing.tracing import trace_inference
from tests.torch.conftest import OPTIONS


@pytest.fixture
def x():
    return torch.randn(2, 3, 12, 12)


@pytest.fixture
def loaded(model, x, states):  # states first: it tells the regions that come after it
    return load(torch.export.export(model, (x,)), **OPTIONS)


def test_agrees_and_notices_changes(model, loaded, x, agree):
    for _ in range(3):
        agree(loaded, model, x)
    with torch.no_grad():
        model.first.weight.mul_(2)
    agree(loaded, model, x)
    model.first.weight.data.mul_(2)
    agree(loaded, model, x)
    model.first.weight.data = torch.randn_like(model.first.weight)
    agree(loaded, model, x)


def test_dynamic_batch(model, x, agree):
    batch = torch.export.Dim("batch", min=1, max=64)
    loaded = load(torch.export.export(model, (x,), dynamic_shapes=({0: batch},)), **OPTIONS)
    for size in (2, 5, 2):
        agree(loaded, model, torch.randn(size, 3, 12, 12))


def test_sizes_that_tracing_fixes(model, x, agree, monkeypatch, caplog):
    def fixing(module, values, compiler):
        assert values[0].shape[0] == 2  # so the batch is 2 from here on
        return trace_inference(module, values, compiler)

    monkeypatch.setattr("softneuro.torch_backend.exported.trace_inference", fixing)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    for _ in range(2):
        caplog.clear()
        loaded = load(program, **OPTIONS)
        assert "the host runs the program" in caplog.text
        for size in (2, 5):
            agree(loaded, model, torch.randn(size, 3, 12, 12), nets=False)


def test_sizes_that_depend_on_each_other(agree, caplog):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1)).eval()
    half = torch.export.Dim("half", min=2, max=64)
    shapes = ({2: 2 * half, 3: 2 * half},)
    loaded = load(torch.export.export(model, (torch.randn(1, 3, 12, 12),), dynamic_shapes=shapes), **OPTIONS)
    for size in (12, 20):
        agree(loaded, model, torch.randn(1, 3, size, size))
    assert "the host runs the program" not in caplog.text


def test_refuses_what_the_program_refuses(loaded, x):
    for _ in range(2):
        for bad in (x[:1], x[0], x.double(), 3):
            with pytest.raises(Exception) as theirs:
                loaded.program.module()(bad)
            with pytest.raises(type(theirs.value)):
                loaded(bad)
    with pytest.raises(ValueError, match="input tree spec"):
        loaded(x, x)


def test_misuse(model, loaded):
    with pytest.raises(TypeError, match="export"):
        load(model)
    with pytest.raises(softneuro.Error, match="tune"):
        load(loaded.program, tunee="off")
    with pytest.raises(softneuro.Error, match="host='inductor'"):
        load(loaded.program, host="inductor")


def test_mutated_buffer_and_outputs(x):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x, *, scale=2.0):
            self.calls.add_(1)
            return self.conv(x).relu(), {"calls": self.calls * scale, "same": x}

    model = Counting().eval()
    loaded = load(torch.export.export(model, (x,), {"scale": 2.0}), **OPTIONS)
    model.calls.zero_()
    with torch.no_grad():
        for count in (1, 2, 3):
            y, rest = loaded(x, scale=2.0)
            assert float(rest["calls"]) == 2 * count
            assert rest["same"] is x
            torch.testing.assert_close(y, model.conv(x).relu())


def test_gradients_are_the_hosts(model, loaded, x):
    with pytest.warns(UserWarning, match="no_grad"):
        loaded(x).sum().backward()
    ours = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(ours, model.parameters(), strict=True))


def test_no_region(x):
    loaded = load(torch.export.export(nn.Softsign(), (x,)), **OPTIONS)
    assert torch.equal(loaded(x), nn.Softsign()(x))


def test_copy(model, loaded, x, agree):
    twin = copy.deepcopy(loaded)
    with torch.no_grad():
        before = model(x)
        model.first.weight.mul_(2)
        torch.testing.assert_close(twin(x), before)
    agree(loaded, model, x)


def test_reports(model, loaded, x, capsys):
    """explain, tune and refresh take a loaded program as they take a model."""
    assert "conv2d" in torch_backend.explain(loaded, x)
    assert "conv2d" in capsys.readouterr().out
    assert torch_backend.tune(loaded, x).layers
    with torch.no_grad():
        before = loaded(x).clone()
        model.first.weight.data.numpy()[:] *= 2  # which no version counter shows
        torch_backend.refresh(loaded)
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-4, atol=1e-4)
        assert not torch.equal(loaded(x), before)


def test_saved_program(model, x, agree, tmp_path):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (x,)), path)
    agree(load(torch.export.load(path), **OPTIONS), model, x)


D = torch.export.Dim("d", min=2, max=64)
IMAGES = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3))
ROWS = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


class Both(nn.Module):
    def __init__(self, join):
        super().__init__()
        self.join, self.linear = join, nn.Linear(16, 8)

    def forward(self, x, y):
        return self.join(self.linear(x).relu(), self.linear(y).relu())


def rows(*counts, dtype=torch.float32):
    return tuple(torch.randn(2, count, 16, dtype=dtype) for count in counts)


def images(height, width):
    return (torch.randn(2, 3, height, width).to(memory_format=torch.channels_last),)


# A model, what it is exported for, which sizes are open, other inputs.
OPEN = {
    "rows": (ROWS, rows(5), ({1: D},), rows(9)),
    "halves": (ROWS, rows(5, dtype=torch.bfloat16), ({1: D},), rows(9, dtype=torch.bfloat16)),
    "height and width": (IMAGES, images(16, 12), ({2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.AUTO},),
                         images(20, 18)),
    "even sizes": (IMAGES, images(16, 12), ({2: 2 * torch.export.Dim("h", min=4, max=64), 3: 2 * D},), images(20, 18)),
    "two inputs": (Both(lambda x, y: torch.cat([x, y], 1)), rows(5, 7), ({1: D}, {1: torch.export.Dim("e", max=64)}),
                   rows(9, 4)),
    "one more": (Both(lambda x, y: x[:, 1:] + y), rows(6, 5), ({1: D + 1}, {1: D}), rows(10, 9)),
    "twice as many": (Both(lambda x, y: x[:, ::2] + y), rows(10, 5), ({1: 2 * D}, {1: D}), rows(18, 9)),
}  # fmt: skip


@pytest.mark.parametrize("case", OPEN)
def test_saved_programs_of_open_sizes(case, agree):
    model, x, sizes, others = OPEN[case]
    model = model.to(x[0].dtype)
    file = io.BytesIO()
    torch.export.save(torch.export.export(model.eval(), x, dynamic_shapes=sizes), file)
    file.seek(0)
    loaded = load(torch.export.load(file), **OPTIONS)
    for given in (x, others, x):
        agree(loaded, model, *given, tolerance=1e-5 if x[0].dtype == torch.float32 else 2e-2)


def test_eight_threads(model, loaded, x):
    expected, failures = model(x).detach(), []

    def work():
        try:
            with torch.no_grad():
                for _ in range(20):
                    torch.testing.assert_close(loaded(x), expected)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
