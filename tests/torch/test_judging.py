"""Never worse: how net and host are compared, and what is remembered of it."""

import time

import pytest
import torch
from torch import nn

import softneuro
from softneuro.torch_backend.call import judging


def sleeper(*seconds):
    """A run that takes these times in turn, by a clock of its own."""
    left = iter(seconds * 1000)

    def run():
        Clock.now += next(left)
        return [torch.ones(3)]

    return run


class Clock:
    now = 0.0


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    Clock.now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)


def test_a_clear_case_ends_early():
    net, host, error = judging.compare(sleeper(0.1), sleeper(0.2), 1e-4)
    assert host == pytest.approx(0.2)
    assert net == pytest.approx(0.1)
    assert error == 0
    assert Clock.now <= 0.3 * (2 * judging.MIN_ROUNDS + 1)


def test_a_preempted_run_decides_nothing():
    net, host, _ = judging.compare(sleeper(0.01, 0.01, 0.5), sleeper(0.012), 1e-4)
    assert net < host
    net, host, _ = judging.compare(sleeper(0.01), sleeper(0.008, 0.008, 0.7, 0.008), 1e-4)
    assert net > host


def test_a_machine_that_slows_down_decides_nothing():
    """Both become ten times slower in the middle: the ratios stay."""
    slow = [1.0] * 6 + [10.0] * 100
    net, host, _ = judging.compare(sleeper(*(0.01 * s for s in slow)), sleeper(*(0.011 * s for s in slow)), 1e-4)
    assert net / host == pytest.approx(10 / 11)


def test_a_close_case_is_measured_for_longer():
    judging.compare(sleeper(0.1, 0.11), sleeper(0.11, 0.1), 1e-4)
    assert judging.CLOSE_SECONDS < Clock.now < judging.CLOSE_SECONDS + 1


def test_an_error_beyond_the_budget_is_not_timed():
    _, _, error = judging.compare(sleeper(1.0), lambda: [torch.zeros(3)], 1e-4)
    assert error > 1
    assert Clock.now <= 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_only_one_of_both_has_finite_is_an_error(dtype):
    finite, other = torch.tensor([1.0, 2.0], dtype=dtype), torch.tensor([1.0, float("nan")], dtype=dtype)
    for net, host in ((finite, other), (other, finite)):
        _, _, error = judging.compare(lambda net=net: [net], lambda host=host: [host], 1e-4)
        assert error == float("inf")
    assert judging.compare(lambda: [other], lambda: [other], 1e-4)[2] == 0
    assert judging.compare(lambda: [finite], lambda: [finite * 1.5], 1e-4)[2] == pytest.approx(1 / 3)


@pytest.fixture
def key(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "costs"))
    return softneuro._C.CostKey("device", 2, "region", "host", "version")


def options(**changes):
    from softneuro.torch_backend.options import parse

    return parse(changes)


def judge(key, ratio, **changes):
    return judging.judge(sleeper(0.1 * ratio), sleeper(0.1), key, options(**changes))


def test_a_clear_verdict_stays(key):
    assert judge(key, 0.5).wins
    assert judge(key, 2.0).wins  # not measured
    assert judging.database().find_verdict(key)[4] == 1


def test_a_close_verdict_is_taken_twice_and_then_stays(key):
    assert judge(key, 0.98).wins
    assert judge(key, 1.2, tune="cached").wins  # not measured
    assert not judge(key, 1.2).wins
    won, net, host, _, trials = judging.database().find_verdict(key)
    assert not won
    assert net / host == pytest.approx((0.98 * 1.2) ** 0.5)
    assert trials == judging.TRIALS
    assert not judge(key, 0.5).wins


def test_another_plan_is_another_verdict():
    def plan(channels):
        graph = softneuro.Graph()
        x = graph.input("x", (1, channels, 8, 8))
        weight = torch.ones(channels, channels, 3, 3).numpy()
        graph.output(graph.add("conv2d", [x], weights={"weight": weight}, padding=[1, 1, 1, 1]))
        graph.optimize()
        return softneuro.tune(graph, {"tune": "off"})

    keys = [judging.verdict_key("r", (2, 1), options(), p, 1e-4) for p in (plan(3), plan(3), plan(64))]
    database = judging.database()
    database.add_verdict(keys[0], True, 1.0, 2.0, 0.0)
    assert database.find_verdict(keys[1]) is not None
    assert database.find_verdict(keys[2]) is None


def test_losing_costs_little(compile_model, monkeypatch):
    """A region that stays with the host neither prepares nor compares again."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 9, 9)
    compiled = compile_model(model, never_worse=True, tune="profile")
    with torch.no_grad(), monkeypatch.context() as patch:
        patch.setattr(judging, "compare", lambda *_: (2.0, 1.0, 0.0))
        compiled(x)
        patch.setattr(softneuro, "Net", lambda *_, **__: pytest.fail("prepared again"))
        assert torch.equal(compiled(x), model(x))


def test_never_worse(model, compile_model, states):
    compiled = compile_model(model, never_worse=True, tune="profile")
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        torch.testing.assert_close(compiled(x), model(x))
    assert len(states()) == 1


@pytest.mark.parametrize("errors", [[3e-4, 2e-5], [3e-4, 3e-4, 3e-4, 3e-4]])
def test_a_plan_too_inexact_on_real_inputs_is_chosen_again(model, compile_model, states, monkeypatch, errors):
    from softneuro.torch_backend.call import judging, planning

    allowed, judged, make_plan = [], iter(errors), planning.make_plan

    def noted(graph, options, threads, limit, near):
        allowed.append(limit)
        return make_plan(graph, options, threads, limit, near)

    monkeypatch.setattr(planning, "make_plan", noted)
    monkeypatch.setattr(judging, "same_routines", lambda a, b: False)
    monkeypatch.setattr(judging, "compare", lambda *_: (1.0, 2.0, next(judged)))
    x = torch.randn(1, 3, 12, 12)
    with torch.no_grad():
        for _ in range(2):  # the second time all verdicts are remembered
            torch._dynamo.reset()
            result = compile_model(model, never_worse=True, tune="profile")(x)
            torch.testing.assert_close(result, model(x))
    half = len(allowed) // 2
    assert allowed[:half] == allowed[half:] == sorted(set(allowed), reverse=True)
    assert allowed[:2] == [1e-4, 1.7e-5]
    assert any(state is None for state in states()) == (errors[-1] < 1e-4)
