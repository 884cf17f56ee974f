"""What a model was tuned to holds for graphs that torch compiles later, for its weights alone, until another budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import softneuro
import softneuro.torch_backend as backend
from tests.torch.test_budgets import BYTES, FLOATS, Network, batches, compiled, error


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def model() -> Network:
    torch.manual_seed(0)
    return Network().eval()


def test_graphs_that_are_compiled_later_follow(model: Network) -> None:
    net = compiled(model)
    tuned = backend.tune(net, batches(4), max_error=0.05, **BYTES)
    many = batches(1, size=3)[0]
    with torch.no_grad():
        assert FLOATS < error(net(many), model(many)) < 0.1
    with torch.inference_mode():
        assert FLOATS < error(net(many), model(many)) < 0.1
    torch._dynamo.reset()
    x = batches(1, seed=4)[0]
    with torch.no_grad():
        assert FLOATS < error(net(x), model(x)) < 0.1
        backend.use_plan(net, tuned)
        assert FLOATS < error(net(x), model(x)) < 0.1


def test_an_evaluation_of_other_shapes_is_one_of_the_plan(model: Network) -> None:
    data = batches(2, seed=5, size=4)
    seen: list[float] = []

    def evaluate(net: Any) -> float:
        seen.append(max(error(net(x), model(x)) for x in data))
        return -seen[-1]

    backend.tune(compiled(model), batches(4), evaluate=evaluate, max_drop=0.01, **BYTES)
    assert seen[0] < FLOATS
    assert max(seen) > FLOATS


def test_new_weights_run_in_floats(model: Network) -> None:
    net = compiled(model)
    backend.tune(net, batches(4), max_error=0.05, **BYTES)
    x = batches(1, seed=6)[0]
    with torch.no_grad():
        assert error(net(x), model(x)) > FLOATS
        model.load_state_dict({name: 1.6 * value for name, value in model.state_dict().items()})
        assert error(net(x), model(x)) < FLOATS


def test_a_tuning_that_fails_leaves_the_one_before(model: Network) -> None:
    net = compiled(model)
    tuned = backend.tune(net, batches(4), max_error=0.05, **BYTES)
    x = batches(1, seed=6)[0]
    with torch.no_grad():
        before = net(x)
        with pytest.raises(ZeroDivisionError):
            backend.tune(net, [0.02 * one for one in batches(4)], evaluate=lambda _: 1 / 0, max_drop=0.1)
        assert error(net(x), before) < FLOATS
        backend.calibrate(net, batches(2), out=Path(tuned.calibration).parent / "more.txt")
        assert error(net(x), before) < FLOATS
        backend.use_plan(net, tuned)
        assert error(net(x), before) < FLOATS


def test_halves_are_calibrated(tmp_path: Path) -> None:
    torch.manual_seed(0)
    halves = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval().half()
    found = backend.calibrate(compiled(halves), [torch.randn(1, 64).half() for _ in range(2)], out=tmp_path / "r.txt")
    assert found.batches == 2


def test_a_state_is_of_its_weights(model: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state.json"
    calls = 0

    def evaluate(_: Any) -> float:
        nonlocal calls
        calls += 1
        return 1.0

    backend.tune(compiled(model), batches(4), evaluate=evaluate, max_drop=0.1, state=state)
    made, calls = calls, 0
    assert made > 0
    torch._dynamo.reset()
    with torch.no_grad():
        model.head.weight *= 3
    backend.tune(compiled(model), batches(4), evaluate=evaluate, max_drop=0.1, state=state)
    assert calls > 0
    assert "of other weights" in caplog.text
    with pytest.raises(softneuro.Error, match="no folder"):
        backend.tune(compiled(model), batches(4), evaluate=evaluate, max_drop=0.1, state=tmp_path / "none" / "s.json")
