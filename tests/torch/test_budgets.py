"""Budgets at torch's door: calibration on data, plans with layers in bytes, proof by what was held back."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import softneuro
import softneuro.torch_backend as backend
from softneuro.torch_backend import registry

SIDE = 24
FLOATS = 1e-4  # what plans of floats err by, at most
# A layer runs in bytes by these, whatever is faster on a machine.
BYTES: dict[str, Any] = {"keep": "wide:qint8"}


class Network(nn.Module):
    """Convolutions, a shortcut, a pool, and a linear layer that is bound by reading its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 32, 3, padding=1)
        self.wide = nn.Linear(32 * 36, 1024)
        self.head = nn.Linear(1024, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x) + x)
        x = torch.max_pool2d(x, 4).flatten(1)
        return self.head(torch.relu(self.wide(x)))


@pytest.fixture
def model() -> Network:
    torch.manual_seed(0)
    return Network().eval()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def batches(count: int, seed: int = 1, size: int = 1) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, 3, SIDE, SIDE, generator=generator) for _ in range(count)]


def compiled(model: nn.Module, **options: Any) -> Any:
    # Which of the two is faster on a machine is no matter here.
    return torch.compile(model, backend="softneuro", options={"never_worse": False, **options})


def error(result: torch.Tensor, truth: torch.Tensor) -> float:
    return float((result - truth).norm() / truth.norm())


def sections(path: Path | str) -> list[softneuro._C.RangeSection]:
    return softneuro._C.RangeTable.load(str(path)).sections


def plans() -> list[softneuro._C.Plan]:
    gc.collect()  # what other tests have compiled may be garbage that nobody has looked for
    return [one.plan for region in registry.all_regions() for one in region.shaped.values() if one.plan is not None]


def in_bytes() -> int:
    """Layers that are not in floats."""
    forms = ("qint8", "dynamic_linear/", "linear_blocks/")
    return sum(any(form in layer.descriptor for form in forms) for plan in plans() for layer in plan.layers)


def test_ranges_are_those_of_the_data(model: Network, tmp_path: Path) -> None:
    data, out = batches(3), tmp_path / "ranges.txt"
    net = compiled(model)
    found = backend.calibrate(net, data, method="min_max", out=out)
    assert (found.batches, found.regions, found.path) == (3, 1, str(out))
    [section] = sections(out)
    assert section.batches == section.samples == 3
    assert section.method == "min_max"
    first = next(row for row in section.blobs if row.blob == 0)
    values = torch.stack(data)
    assert (first.least, first.most) == (values.min().item(), values.max().item())
    assert first.count == values.numel()
    with torch.no_grad():
        truth = torch.cat([model(x) for x in data])
    last = max(section.blobs, key=lambda row: row.blob)
    assert last.most == pytest.approx(truth.max().item(), rel=1e-4)
    assert all(row.error is not None and 0 < row.error < 0.2 for row in section.blobs)
    assert sum(row.form == "bytes" for row in section.layers) == 4
    assert all(row.error is not None and 0 < row.error < 0.2 for row in section.layers)
    with torch.no_grad():
        assert error(net(data[0]), model(data[0])) < FLOATS  # it runs as before
    assert in_bytes() == 0


def test_one_pass_over_any_kind_of_data(model: Network, tmp_path: Path) -> None:
    x = batches(2)
    kinds: list[Any] = [
        x,
        [(one, torch.tensor([3])) for one in x],
        [[one] for one in x],
        [{"x": one} for one in x],
        iter(x),
    ]
    texts = set()
    for number, data in enumerate(kinds):
        out = tmp_path / f"{number}.txt"
        torch._dynamo.reset()
        backend.calibrate(compiled(model), data, out=out)
        texts.add(out.read_text())
    out = tmp_path / "transformed.txt"
    torch._dynamo.reset()
    backend.calibrate(compiled(model), [{"image": one} for one in x], transform=lambda item: item["image"], out=out)
    assert len({*texts, out.read_text()}) == 1


def test_a_file_of_ranges_buys_bytes(model: Network, tmp_path: Path) -> None:
    out = tmp_path / "ranges.txt"
    backend.calibrate(compiled(model), batches(4), out=out)
    torch._dynamo.reset()
    x = batches(1, seed=9)[0]
    with torch.no_grad():
        truth = model(x)
        net = compiled(model, calibration=out, max_error=0.05, **BYTES)
        assert error(net(x), truth) < 0.05
    assert in_bytes() > 0
    [plan] = plans()
    assert 0 < plan.foretold_error <= 0.05
    torch._dynamo.reset()
    with torch.no_grad():  # without data to go by, or too tight a limit, there are none
        assert error(compiled(model, max_error=0.05)(x), truth) < 0.05
    assert in_bytes() == 0
    torch._dynamo.reset()
    with torch.no_grad():
        compiled(model, calibration=out, max_error=1e-6)(x)
    assert in_bytes() == 0


def test_error_within_the_limit_on_data_that_chose_nothing(model: Network) -> None:
    net = compiled(model)
    tuned = backend.tune(net, batches(8), max_error=0.02, **BYTES)
    assert tuned.chosen.error <= 0.02
    assert in_bytes() > 0
    with torch.no_grad():
        errors = [error(net(x), model(x)) for x in batches(4, seed=5)]
    assert max(errors) < 0.03
    # What was foretold for one sample after the other holds for all at once.
    assert tuned.chosen.error / 2 < max(plan.foretold_error for plan in plans()) < 2 * tuned.chosen.error
    assert "0.02" in str(tuned)


def test_an_evaluation_decides(model: Network) -> None:
    data = batches(8)
    with torch.no_grad():
        truths = [model(x) for x in data]
    calls = 0

    def evaluate(net: Any) -> list[float]:
        nonlocal calls
        calls += 1
        return [float(error(net(x), truth) < 0.05) for x, truth in zip(data, truths, strict=True)]

    net = compiled(model)
    tuned = backend.tune(net, data, evaluate=evaluate, max_drop=0.0, **BYTES)
    assert tuned.chosen.passed
    assert tuned.chosen.drop == 0
    assert calls <= 8
    with torch.no_grad():
        assert sum(evaluate(net)) == len(data)
    assert in_bytes() > 0


def test_an_evaluation_that_bears_nothing_leaves_floats(model: Network) -> None:
    data = batches(4)
    net = compiled(model)

    def evaluate(net: Any) -> float:
        with torch.no_grad():
            return -max(error(net(x), model(x)) for x in data)

    tuned = backend.tune(net, data, evaluate=evaluate, max_drop=1e-5, **BYTES)
    assert tuned.chosen.error < FLOATS
    assert in_bytes() == 0


def test_the_front_and_its_plans(model: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softneuro.tuned.LEVELS", (0.5, 0.1, 0.05, 0.02))  # no tighter than bytes keep to
    net, path = compiled(model), tmp_path / "plans.txt"
    tuned = backend.tune(net, batches(8), max_error=0.02, pareto=True, plan=path, **BYTES)
    front = tuned.front
    assert front
    for one, other in itertools.permutations(front, 2):
        assert one.seconds < other.seconds or one.error < other.error or one.memory < other.memory
    assert len({trial.plan for trial in front}) == len(front)
    x = batches(1, seed=3)[0]
    with torch.no_grad():
        truth = model(x)
        backend.use_plan(net, path, max_error=1e-4)
        assert error(net(x), truth) < FLOATS
        backend.use_plan(net, tuned)
        chosen = net(x)
        assert FLOATS < error(chosen, truth) < 0.03
        torch._dynamo.reset()
        # Another process needs no data: the file has the grids, for these weights.
        again = compiled(model, plan=path, max_error=0.02)
        assert FLOATS < error(again(x), truth) < 0.03
        assert in_bytes() > 0
        torch._dynamo.reset()
        other = copy.deepcopy(model)
        other.second.weight.data *= 1.5
        result = compiled(other, plan=path, max_error=0.02)(x)
        assert error(result, other(x)) < 0.02
    assert not plans()[-1].grids


def test_the_first_calls_are_observed_online(model: Network) -> None:
    net = compiled(model, calibration="online:3", max_error=0.05, **BYTES)
    data = batches(6)
    with torch.no_grad():
        errors = [error(net(x), model(x)) for x in data]
    assert max(errors[:3]) < FLOATS
    assert all(FLOATS < one < 0.05 for one in errors[3:]), errors
    assert in_bytes() > 0
    torch._dynamo.reset()
    with torch.no_grad():  # what is known of these weights is not observed once more
        again = compiled(model, calibration="online:3", max_error=0.05, **BYTES)
        assert error(again(data[0]), model(data[0])) > FLOATS


def test_threads_call_while_it_switches(model: Network) -> None:
    net = compiled(model, calibration="online:8", max_error=0.05, **BYTES)
    data = batches(4)
    with torch.no_grad():
        truths = [model(x) for x in data]
        net(data[0])
    worst: list[float] = []

    def work() -> None:
        with torch.no_grad():
            for _ in range(8):
                worst.extend(error(net(x), truth) for x, truth in zip(data, truths, strict=True))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worst) == 96
    assert max(worst) < 0.05


def test_other_weights_make_ranges_stale(model: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "ranges.txt"
    backend.calibrate(compiled(model), batches(4), out=out)
    torch._dynamo.reset()
    with torch.no_grad():
        model.head.weight *= 2
        x = batches(1, seed=2)[0]
        net = torch.compile(model, backend="softneuro", options={"calibration": out, "max_error": 0.05})
        assert error(net(x), model(x)) < 0.05
    assert "stale" in caplog.text
    torch._dynamo.reset()
    with torch.no_grad():  # where nothing is compared, they are not used
        assert error(compiled(model, calibration=out, max_error=0.05, tune="cached")(x), model(x)) < 1e-4
    assert in_bytes() == 0


@pytest.mark.parametrize("values", [math.nan, math.inf, 1e30, 1e-44, 0.0])
def test_odd_values(model: Network, tmp_path: Path, values: float) -> None:
    data = batches(3)
    data[0][0, 0, :4] = values
    out = tmp_path / "ranges.txt"
    net = compiled(model)
    backend.calibrate(net, data, out=out)
    [section] = sections(out)
    assert all(math.isfinite(row.least) and math.isfinite(row.most) for row in section.blobs)
    torch._dynamo.reset()
    with torch.no_grad():
        assert torch.isfinite(compiled(model, calibration=out, max_error=0.3)(data[1])).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [([], "no batch"), (torch.zeros(1, 3, SIDE, SIDE), "an iterable of batches"), ([3], "give a transform")],
)
def test_data_that_is_none(model: Network, tmp_path: Path, data: Any, message: str) -> None:
    net = compiled(model)
    with torch.no_grad():
        net(batches(1)[0])
    with pytest.raises(softneuro.Error, match=message):
        backend.calibrate(net, data, out=tmp_path / "ranges.txt")
    with torch.no_grad():
        assert error(net(batches(1)[0]), model(batches(1)[0])) < FLOATS


def test_scores_that_are_none(model: Network, caplog: pytest.LogCaptureFixture) -> None:
    net, data = compiled(model), batches(4)
    for value, message in ((math.nan, "finite"), ("good", "no number"), ([], "no samples")):
        with pytest.raises(softneuro.Error, match=message):
            backend.tune(net, data, evaluate=lambda _, value=value: value, max_drop=0.01)
    with pytest.raises(ZeroDivisionError):
        backend.tune(net, data, evaluate=lambda _: 1 / 0, max_drop=0.01)
    counts = iter([4, 4, 3])
    with pytest.raises(softneuro.Error, match="4 by sample for floats, and 3"):
        backend.tune(net, data, evaluate=lambda _: [0.5] * next(counts), max_drop=0.01, **BYTES)
    with torch.no_grad():
        assert error(net(data[0]), model(data[0])) < FLOATS  # it runs as before
    scores = iter([0.9, 0.8])
    backend.tune(net, data, evaluate=lambda _: next(scores, 0.9), max_drop=0.01, max_evaluations=3)
    assert "no drop below 0.1 can be told" in caplog.text
    with pytest.raises(softneuro.Error, match=r"min_region_size is settled .* torch\.compile"):
        backend.tune(net, data, max_error=0.1, min_region_size=1)
    with pytest.raises(softneuro.Error, match="one limit"):
        backend.tune(net, data, evaluate=lambda _: 1.0)
    with pytest.raises(softneuro.Error, match="below one of 4 samples"):
        backend.tune(net, data, evaluate=lambda _: [1.0, 0.0, 1.0, 1.0], max_drop=0.1)


def test_a_model_that_is_not_compiled(model: Network) -> None:
    with pytest.raises(softneuro.Error, match="not compiled"):
        backend.calibrate(model, batches(1))
    with pytest.raises(softneuro.Error, match="nothing of this model has run"):
        backend.use_plan(compiled(model), "plans.txt")
