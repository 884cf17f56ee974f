"""Routine selection against enumeration on random nets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softneuro import _C
from tests.tune.problems import Toy, Truth, enumerate_plans, plan_cost, random_toy

SEEDS = st.integers(0, 2**32)
MAX_PLANS = 512


def small_enough(toy: Toy) -> bool:
    plans = 1
    for i, (_, _, labels) in enumerate(toy.layers):
        plans *= len(labels) + sum(any(layer == i for layer, _, _ in covers) for _, covers in toy.groups)
    return plans <= MAX_PLANS


def tight() -> _C.DprsLimits:
    """Limits that force branch and bound with weak bounds."""
    limits = _C.DprsLimits()
    limits.max_table = 1
    limits.mini_table = 8
    limits.time_limit_s = 60.0
    return limits


def check_plan(toy: Toy, truth: Truth, result: _C.DprsResult) -> None:
    """The plan is one, costs what it says, and its conversions make all that is wanted."""
    plan = tuple(result.choices)
    assert truth.plans[plan] == result.cost
    assert sum(cost for *_, cost in result.adapts) <= result.cost
    made: dict[int, set[int]] = {}
    for blob, source, target, cost in result.adapts:
        assert toy.adapts[blob][source * toy.schemas + target] == cost
        assert target not in made.setdefault(blob, set())
        made[blob].add(target)
    # What is there without conversions is what the conversions start from: replacing them by free ones changes nothing.
    free = [[0.0 if (b := i % toy.schemas) in made.get(blob, ()) or b == i // toy.schemas else math.inf
             for i in range(toy.schemas**2)] for blob in range(toy.blobs)]
    assert plan_cost(toy, free, plan) < math.inf


def compare(toy: Toy) -> None:
    truth = enumerate_plans(toy)
    if truth.best == math.inf:
        for limits in (_C.DprsLimits(), tight()):
            with pytest.raises(_C.Error, match="no combination of candidates"):
                _C.dprs_solve(toy.build(), limits)
        return
    result = _C.dprs_solve(toy.build())
    assert result.exact
    assert result.gap == 0
    assert result.cost == truth.best
    check_plan(toy, truth, result)
    assert result.label_marginals == truth.labels
    assert result.group_marginals == truth.groups
    for i, choice in enumerate(result.choices):
        others = [cost for plan, cost in truth.plans.items() if plan[i] != choice]
        assert result.regrets[i] == min(others, default=math.inf) - truth.best

    searched = _C.dprs_solve(toy.build(), tight())
    assert searched.exact
    assert searched.cost == truth.best
    check_plan(toy, truth, searched)

    plans = _C.dprs_k_best(toy.build(), result, 4)
    costs = [plan.cost for plan in plans]
    assert costs == sorted(costs)
    assert len({tuple(plan.choices) for plan in plans}) == len(plans)
    best = sorted(truth.plans.values())
    assert costs[:2] == [cost for cost in best[:2] if cost < math.inf]
    for plan in plans:
        check_plan(toy, truth, plan)


@settings(max_examples=1500, deadline=None)
@given(SEEDS)
def test_random_nets(seed: int) -> None:
    toy = random_toy(seed)
    if small_enough(toy):
        compare(toy)


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_random_dense_blocks(seed: int) -> None:
    toy = random_toy(seed, max_layers=5, dense=True)
    if small_enough(toy):
        compare(toy)
