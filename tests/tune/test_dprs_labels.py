"""Plans within several bounds at once, against enumeration on random nets."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dprs import residual
from softneuro import _C
from tests.tune.problems import Toy, enumerate_plans, random_toy
from tests.tune.test_dprs import small_enough

SEEDS = st.integers(0, 2**32)

Amounts = tuple[list[list[float]], list[float], list[list[float]]]  # by layer and label, group, blob and conversion
Plan = tuple[tuple[int, int], ...]
Costs = tuple[float, ...]  # seconds, and what is bounded


def random_amounts(toy: Toy, seed: int, conversions: bool) -> Amounts:
    rng = random.Random(seed)

    def some() -> float:
        return rng.choice([0, rng.randrange(256)]) / 64

    adapts = [[some() for _ in table] for table in toy.adapts] if conversions else []
    return [[some() for _ in labels] for _, _, labels in toy.layers], [some() for _ in toy.groups], adapts


def front(costs: list[Costs]) -> list[Costs]:
    """Those that none other is below."""
    kept: list[Costs] = []
    for cost in sorted(set(costs)):
        if not any(all(a <= b for a, b in zip(other, cost, strict=True)) for other in kept):
            kept.append(cost)
    return kept


def chains(toy: Toy, measures: list[Amounts], blob: int, sources: list[int]) -> list[list[Costs]]:
    """Per schema the front of chains of conversions to it."""
    zero = (0.0,) * (1 + len(measures))
    best: list[list[Costs]] = [[zero] if s in sources else [] for s in range(toy.schemas)]
    for _ in range(toy.schemas):
        for a, b in itertools.product(range(toy.schemas), repeat=2):
            edge = a * toy.schemas + b
            if a == b or toy.adapts[blob][edge] == math.inf:
                continue
            step = (toy.adapts[blob][edge], *(m[2][blob][edge] if m[2] else 0.0 for m in measures))
            longer = [tuple(x + y for x, y in zip(cost, step, strict=True)) for cost in best[a]]
            best[b] = front(best[b] + longer)
    return best


def plan_costs(toy: Toy, measures: list[Amounts], plan: Plan) -> list[Costs]:
    """The front of what a plan may have, by its conversions; the plan is one."""
    made: dict[int, list[int]] = {blob: list(schemas) for blob, schemas in toy.inputs}
    wanted: dict[int, set[int]] = {blob: set() for blob in range(toy.blobs)}
    for blob, schema in toy.outputs:
        wanted[blob].add(schema)
    total = [0.0] * (1 + len(measures))
    for group in {group for _, group in plan if group >= 0}:
        total = [t + v for t, v in zip(total, [toy.groups[group][0], *(m[1][group] for m in measures)], strict=True)]
    for i, (label, group) in enumerate(plan):
        inputs, outputs, labels = toy.layers[i]
        members = {layer for layer, _, _ in toy.groups[group][1]} if group >= 0 else set()
        if group < 0:
            cost, ins, outs = labels[label]
            total = [t + v for t, v in zip(total, [cost, *(m[0][i][label] for m in measures)], strict=True)]
        else:
            ins, outs = next((a, b) for layer, a, b in toy.groups[group][1] if layer == i)
        for blob, schema in zip(inputs, ins, strict=True):
            if schema >= 0 and not any(blob in toy.layers[m][1] for m in members):
                wanted[blob].add(schema)
        for blob, schema in zip(outputs, outs, strict=True):
            if not members & set(toy.consumers(blob)):
                made[blob] = [schema]
    costs: list[Costs] = [tuple(total)]
    for blob, schemas in wanted.items():
        if not schemas:
            continue
        ways = chains(toy, measures, blob, made[blob])
        for schema in schemas:
            costs = front([tuple(x + y for x, y in zip(a, b, strict=True)) for a in costs for b in ways[schema]])
    return costs


def enumerate_within(toy: Toy, measures: list[Amounts]) -> list[tuple[Costs, Plan]]:
    plans = [plan for plan, cost in enumerate_plans(toy).plans.items() if cost < math.inf]
    return [(cost, plan) for plan in plans for cost in plan_costs(toy, measures, plan)]


def own_costs(toy: Toy, measures: list[Amounts], result: _C.DprsResult) -> Costs:
    """What a result's choices and conversions add up to, each conversion once."""
    total = [0.0] * (1 + len(measures))
    columns = [([[c for c, _, _ in labels] for _, _, labels in toy.layers], [c for c, _ in toy.groups], toy.adapts)]
    for k, (labels, groups, adapts) in enumerate(columns + list(measures)):
        total[k] += sum(labels[i][label] for i, (label, _) in enumerate(result.choices) if label >= 0)
        total[k] += sum(groups[g] for g in {group for _, group in result.choices if group >= 0})
        total[k] += sum(adapts[b][f * toy.schemas + t] for b, f, t, _ in result.adapts) if adapts else 0
    return tuple(total)


def check(seed: int, count: int, share: float, epsilon: float, front_size: int) -> None:
    toy = random_toy(seed, max_layers=4)
    if not small_enough(toy) or enumerate_plans(toy).best == math.inf:
        return
    measures = [random_amounts(toy, seed + k, conversions=k == 0) for k in range(count)]
    ways = enumerate_within(toy, measures)
    most = []
    for k in range(1, count + 1):
        amounts = sorted(cost[k] for cost, _ in ways)
        most.append(amounts[min(int(share * len(amounts)), len(amounts) - 1)])
    within = [(cost, plan) for cost, plan in ways if all(a <= b for a, b in zip(cost[1:], most, strict=True))]
    bounds = [(*amounts, bound) for amounts, bound in zip(measures, most, strict=True)]
    found, lower, _ = _C.dprs_within(toy.build(), bounds, epsilon, front_size)
    if not within:
        assert found is None
        assert lower == math.inf
        return
    best = min(cost[0] for cost, _ in within)
    assert lower <= best + 1e-9
    assert found is not None
    assert best - 1e-9 <= found.cost <= best * (1 + epsilon) + 1e-9
    if epsilon == 0:
        assert found.exact
        assert found.gap == pytest.approx(0, abs=1e-9)
    assert any(plan == tuple(found.choices) and cost[0] == found.cost for cost, plan in within)
    own = own_costs(toy, measures, found)
    assert own[0] <= found.cost
    assert all(a <= b for a, b in zip(own[1:], most, strict=True))


@settings(max_examples=300, deadline=None, database=None)
@given(SEEDS, st.integers(0, 3), st.floats(0, 1))
def test_exact_against_enumeration(seed: int, count: int, share: float) -> None:
    check(seed, count, share, 0.0, 32)


@settings(max_examples=200, deadline=None, database=None)
@given(SEEDS, st.integers(1, 2), st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.2]))
def test_short_fronts_keep_their_word(seed: int, count: int, share: float, epsilon: float) -> None:
    check(seed, count, share, epsilon, 1)


def equal_layers(count: int) -> tuple[_C.DprsProblem, list[list[float]]]:
    labels = [_C.DprsLabel(2.0, [0], [0]), _C.DprsLabel(1.0, [0], [0])]
    layers = [_C.DprsLayer([i], [i + 1], labels) for i in range(count)]
    amounts = [[100.0, 400.0]] * count
    return _C.DprsProblem(1, count + 1, layers, [], [[0.0]] * (count + 1), [(0, [0])], [(count, 0)]), amounts


def test_equal_layers_need_not_all_give_way() -> None:
    """A price takes all or none of them; the bound leaves room for four of six."""
    problem, amounts = equal_layers(6)
    found, lower, stats = _C.dprs_within(problem, [(amounts, [], [], 1850.0)], 0.0)
    assert found is not None
    assert found.cost == lower == 8
    assert stats["priced_bound"] == pytest.approx(12 - 1250 / 300)
    assert [label for label, _ in found.choices].count(1) == 4


def test_a_bound_that_is_met_exactly_is_kept() -> None:
    problem, amounts = equal_layers(6)
    found, _, _ = _C.dprs_within(problem, [(amounts, [], [], 1800.0)], 0.0)
    assert found is not None
    assert found.cost == 8
    found, lower, _ = _C.dprs_within(problem, [(amounts, [], [], 599.0)], 0.0)
    assert found is None
    assert lower == math.inf


def test_bounds_that_only_together_cannot_be_kept() -> None:
    problem, amounts = equal_layers(3)
    other = [[400.0, 100.0]] * 3
    found, lower, _ = _C.dprs_within(problem, [(amounts, [], [], 600.0), (other, [], [], 600.0)], 0.0)
    assert found is None
    assert lower == math.inf
    found, lower, _ = _C.dprs_within(problem, [(amounts, [], [], 900.0), (other, [], [], 600.0)], 0.0)
    assert found is not None
    assert found.cost == lower == 4


def test_ties_are_always_decided_alike() -> None:
    problem, amounts = equal_layers(8)
    plans = [_C.dprs_within(problem, [(amounts, [], [], 1900.0)])[0] for _ in range(5)]
    assert len({tuple(plan.choices) for plan in plans if plan is not None}) == 1
    assert None not in plans


def test_a_net_without_layers() -> None:
    toy = Toy(2, 1, [], [], [[0.0, 0.5, 0.5, 0.0]], [(0, [0])], [(0, 1)])
    found, lower, _ = _C.dprs_within(toy.build(), [([], [], [[0.0, 3.0, 0.0, 0.0]], 3.0)], 0.0)
    assert found is not None
    assert (found.choices, found.cost, found.adapts, lower) == ([], 0.5, [(0, 0, 1, 0.5)], 0.5)
    found, lower, _ = _C.dprs_within(toy.build(), [([], [], [[0.0, 3.0, 0.0, 0.0]], 2.0)], 0.0)
    assert found is None
    assert lower == math.inf


def test_a_chain_of_less_error_is_taken_where_the_bound_asks_for_it() -> None:
    table = [0.0, 1.0, 1.0, math.inf, 0.0, math.inf, math.inf, 1.0, 0.0]
    errors = [0.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    toy = Toy(3, 1, [], [], [table], [(0, [0])], [(0, 1)])
    found, _, _ = _C.dprs_within(toy.build(), [([], [], [errors], 4.0)], 0.0)
    assert found is not None
    assert found.adapts == [(0, 0, 2, 1.0), (0, 2, 1, 1.0)]
    found, _, _ = _C.dprs_within(toy.build(), [([], [], [errors], 5.0)], 0.0)
    assert found is not None
    assert found.adapts == [(0, 0, 1, 1.0)]


def random_bound(layers: int, labels: int) -> tuple[list[list[float]], list[float], list[list[float]]]:
    rng = random.Random(1)
    return [[rng.random() for _ in range(labels)] for _ in range(layers)], [], []


def test_a_large_net_is_solved_within_epsilon() -> None:
    problem = residual(20, 5)
    amounts = random_bound(81, 5)
    found, lower, stats = _C.dprs_within(problem, [(*amounts, 20.0)], 1e-3)
    assert found is not None
    assert 0 < lower <= found.cost <= lower * (1 + 1e-3)
    assert stats["priced_bound"] <= lower
    assert found.cost <= stats["priced_cost"]


def test_a_search_that_is_cut_short_keeps_what_prices_found() -> None:
    problem = residual(20, 5)
    found, lower, stats = _C.dprs_within(problem, [(*random_bound(81, 5), 20.0)], 0.0, most_sums=100)
    assert found is not None
    assert found.cost == stats["priced_cost"]
    assert lower == stats["priced_bound"]
    assert found.gap > 0


def test_more_bounds_than_labels_have_room_for() -> None:
    problem, amounts = equal_layers(1)
    with pytest.raises(_C.Error, match="at most 3 bounds"):
        _C.dprs_within(problem, [(amounts, [], [], 1e9)] * 4)
