"""Routine selection against enumeration on random nets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dprs import chain, dense, residual, tangle
from softneuro import _C
from tests.tune.problems import Toy, Truth, enumerate_plans, plan_cost, random_toy

SEEDS = st.integers(0, 2**32)
MAX_PLANS = 384


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
    limits.max_nodes = 20_000_000  # a few random problems need more than the default
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
    free = [
        [
            0.0 if (b := i % toy.schemas) in made.get(blob, ()) or b == i // toy.schemas else math.inf
            for i in range(toy.schemas**2)
        ]
        for blob in range(toy.blobs)
    ]
    assert plan_cost(toy, free, plan) < math.inf


def compare(toy: Toy) -> None:
    truth = enumerate_plans(toy)
    if truth.best == math.inf:
        with pytest.raises(_C.Error, match="no combination of candidates"):
            _C.dprs_solve(toy.build())
        # A search that ends early cannot know that there is none.
        with pytest.raises(_C.Error, match=r"no combination of candidates|found no plan within the limits"):
            _C.dprs_solve(toy.build(), tight())
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


@settings(max_examples=600, deadline=None, database=None)
@given(SEEDS)
def test_random_nets(seed: int) -> None:
    toy = random_toy(seed)
    if small_enough(toy):
        compare(toy)


@settings(max_examples=200, deadline=None, database=None)
@given(SEEDS)
def test_random_dense_blocks(seed: int) -> None:
    toy = random_toy(seed, max_layers=5, dense=True)
    if small_enough(toy):
        compare(toy)


def test_a_long_chain_needs_small_tables() -> None:
    result = _C.dprs_solve(chain(300, 8))
    assert result.exact
    assert result.stats.variables == 300
    assert result.stats.largest_table == 64
    assert result.stats.table_entries <= 300 * 64


def test_residual_blocks_need_small_tables() -> None:
    result = _C.dprs_solve(residual(50, 8))
    assert result.exact
    assert result.stats.largest_table <= 2 * 8**3
    assert result.stats.table_entries <= 50 * 20 * 8**3


@pytest.mark.parametrize(("layers", "schemas", "largest"), [(24, 3, 2**8), (24, 8, 2**16), (48, 4, 2**11)])
def test_width_of_a_dense_block_is_that_of_its_schemas(layers: int, schemas: int, largest: int) -> None:
    result = _C.dprs_solve(dense(layers, schemas))
    assert result.exact
    assert result.stats.largest_table <= largest


def test_wide_nets_come_with_a_gap_and_bounds_hold() -> None:
    toy = tangle(24, 3)
    limits = _C.DprsLimits()
    exact = _C.dprs_solve(toy, limits)
    limits.max_table = 1
    limits.mini_table = 64
    limits.max_nodes = 50
    limits.time_limit_s = 1e9
    result = _C.dprs_solve(toy, limits)
    assert exact.exact
    assert not result.exact
    assert result.stats.nodes == 50
    assert 0 < result.lower_bound <= exact.cost <= result.cost
    assert result.gap == result.cost - result.lower_bound
    assert min(result.regrets) >= 0
    assert _C.dprs_solve(toy, limits).choices == result.choices


def test_ties_go_to_the_lower_index() -> None:
    labels = [(1.0, [0], [0]), (1.0, [0], [0]), (1.0, [1], [1])]
    toy = Toy(2, 2, [([0], [1], labels)], [], [[0.0] * 4] * 2, [(0, [0, 1])], [(1, 1)])
    result = _C.dprs_solve(toy.build())
    assert result.choices == [(0, -1)]
    assert result.regrets == [0.0]


def test_conversions_go_through_other_schemas_and_are_made_once() -> None:
    # 0 -> 2 only by way of 1, wanted twice; the graph output wants 1 as well.
    table = [0.0, 1.0, math.inf, math.inf, 0.0, 2.0, math.inf, math.inf, 0.0]
    reader = [(0.0, [2], [2])]
    toy = Toy(3, 3, [([0], [1], reader), ([0], [2], reader)], [], [table] * 3, [(0, [0])], [(0, 1), (1, 2), (2, 2)])
    result = _C.dprs_solve(toy.build())
    assert result.adapts == [(0, 0, 1, 1.0), (0, 1, 2, 2.0)]
    assert result.cost == 4.0  # priced as if the chains shared nothing


def test_a_net_without_layers() -> None:
    toy = Toy(2, 1, [], [], [[0.0, 0.5, 0.5, 0.0]], [(0, [0])], [(0, 1)])
    result = _C.dprs_solve(toy.build())
    assert (result.choices, result.cost, result.adapts) == ([], 0.5, [(0, 0, 1, 0.5)])
    assert _C.dprs_solve(_C.DprsProblem(0, 0, [], [], [], [], [])).cost == 0


def malformed() -> dict[str, Toy]:
    label = (1.0, [0], [0])

    def net(**changes: object) -> Toy:
        toy = Toy(1, 3, [([0], [1], [label]), ([1], [2], [label])], [], [[0.0]] * 3, [(0, [0])], [(2, 0)])
        for name, value in changes.items():
            setattr(toy, name, value)
        return toy

    first, second = (0, [0], [0]), (1, [0], [0])
    three = [([0], [1], [label]), ([1], [2], [label]), ([1, 2], [3], [(1.0, [0, 0], [0])])]
    return {
        "layer 1: no candidate computes it": net(layers=[([0], [1], [label]), ([1], [2], [])]),
        "layer 0: no candidate": net(layers=[([0], [1], [(math.inf, [0], [0])]), ([1], [2], [label])]),
        "layer 0, label 0: cost nan": net(layers=[([0], [1], [(math.nan, [0], [0])]), ([1], [2], [label])]),
        "layer 1, label 0: cost -1": net(layers=[([0], [1], [label]), ([1], [2], [(-1.0, [0], [0])])]),
        "layer 0: reads blob 1 before": net(layers=[([1], [2], [label]), ([0], [1], [label])]),
        "layer 1: blob 1 is made twice": net(layers=[([0], [1], [label]), ([1], [1], [label])]),
        "layer 0: there is no blob 7": net(layers=[([7], [1], [label])]),
        "layer 0, label 0: schema 1 is not one of 1": net(layers=[([0], [1], [(1.0, [1], [0])])]),
        "layer 0, label 0: schema -1 is not": net(layers=[([0], [1], [(1.0, [0], [-1])])]),
        "layer 0, label 0: 2 schemas for 1 slots": net(layers=[([0], [1], [(1.0, [0, 0], [0])])]),
        "blob 1: conversion table has 2": net(adapts=[[0.0], [0.0, 0.0], [0.0]]),
        "one conversion table per blob": net(adapts=[[0.0]]),
        "graph input 0: is available in no schema": net(inputs=[(0, [])]),
        "graph output 0: schema 3": net(outputs=[(2, 3)]),
        "group 0: covers no layer": net(groups=[(1.0, [])]),
        "group 0: there is no layer 5": net(groups=[(1.0, [(5, [0], [0])])]),
        "group 0: covers layer 0 twice": net(groups=[(1.0, [first, first])]),
        "group 0: blob 1 is inside the group and read outside it": net(
            groups=[(1.0, [first, second])], outputs=[(1, 0), (2, 0)]
        ),
        "group 0: blob 2 leaves the group without": net(groups=[(1.0, [first, (1, [0], [-1])])]),
        "group 0: a path leaves the group and returns at layer 2": net(
            blobs=4,
            layers=[([0], [1], [label]), ([1], [2], [label]), ([2], [3], [label])],
            adapts=[[0.0]] * 4,
            outputs=[(3, 0)],
            groups=[(1.0, [first, (2, [0], [0])])],
        ),
        "group 0: blob 1 is inside": net(
            blobs=4, layers=three, adapts=[[0.0]] * 4, outputs=[(3, 0)], groups=[(1.0, [first, (2, [0, 0], [0])])]
        ),
    }


@pytest.mark.parametrize("message", malformed())
def test_malformed_problems_are_refused(message: str) -> None:
    with pytest.raises(_C.Error, match=message):
        _C.dprs_solve(malformed()[message].build())


def test_k_best_refuses_zero() -> None:
    problem = chain(3, 2)
    with pytest.raises(_C.Error, match="at least 1"):
        _C.dprs_k_best(problem, _C.dprs_solve(problem), 0)
