"""Statistics of a blob's values, ranges by each method, and grids of ranges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softneuro import _C

Floats = npt.NDArray[np.float32]

FLT_MAX = float(np.finfo(np.float32).max)
METHODS = ["min_max", "moving_average", "percentile", "percentile:99", "mse", "entropy"]
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
BATCHES = st.lists(arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32)), max_size=5)


def of(*batches: Floats) -> _C.BlobStatistics:
    statistics = _C.BlobStatistics()
    for batch in batches:
        statistics.observe(batch)
    return statistics


def gaussian(count: int = 200_000, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(count, dtype=np.float32)


def through(values: Floats, grid: tuple[float, int]) -> npt.NDArray[np.float64]:
    """What is left of values after bytes."""
    scale, zero = np.float32(grid[0]), grid[1]
    with np.errstate(over="ignore"):
        steps = np.clip(np.rint((values / scale).astype(np.float64)) + zero, 0, 255) - zero
    return (steps.astype(np.float32) * scale).astype(np.float64)


def squared_error(values: Floats, limits: tuple[float, float]) -> float:
    return float(np.mean((through(values, _C.grid_of(*limits)) - values.astype(np.float64)) ** 2))


@settings(max_examples=60, deadline=None, database=None)
@given(BATCHES)
def test_counts_and_bounds_are_exact(batches: list[Floats]) -> None:
    statistics = of(*batches)
    values = np.concatenate([np.empty(0, np.float32), *batches])
    finite = values[np.isfinite(values)]
    assert statistics.count == finite.size
    assert statistics.nans == np.isnan(values).sum()
    assert statistics.infinities == np.isinf(values).sum()
    assert statistics.nonfinite == statistics.nans + statistics.infinities
    assert statistics.batches == sum(bool(np.isfinite(batch).any()) for batch in batches)
    if finite.size:
        assert (statistics.least, statistics.most) == (finite.min(), finite.max())


@settings(max_examples=60, deadline=None, database=None)
@given(BATCHES)
def test_bins_are_narrow_and_hold_what_was_seen(batches: list[Floats]) -> None:
    values = np.concatenate([np.empty(0, np.float32), *batches])
    finite = np.sort(values[np.isfinite(values)])
    at, before = 0, -np.inf
    for low, high, count in of(*batches).bins():
        inside = finite[at : at + count]
        assert before <= low <= inside[0] <= inside[-1] <= high
        assert high - low <= max(2.0**-7 * min(abs(low), abs(high)), 2.0**-133)
        at, before = at + count, high
    assert at == finite.size


@settings(max_examples=60, deadline=None, database=None)
@given(BATCHES, st.randoms(use_true_random=False))
def test_neither_batches_nor_merging_nor_order_matter(batches: list[Floats], random: object) -> None:
    values = np.concatenate([np.empty(0, np.float32), *batches])
    whole = of(values)
    merged, backwards = _C.BlobStatistics(), of(*batches[::-1])
    for batch in batches:
        merged.merge(of(batch))
    for other in (of(*batches), merged, backwards):
        assert other.bins() == whole.bins()
        assert (other.count, other.nans, other.infinities) == (whole.count, whole.nans, whole.infinities)
        if whole.count:
            for method in ("min_max", "percentile:90", "mse", "entropy"):
                assert _C.fit(other, method) == _C.fit(whole, method)


def test_any_shape_and_strides_but_floats_only() -> None:
    values = gaussian(4 * 6 * 8).reshape(4, 6, 8)
    plain = of(values)
    for same in (values.transpose(2, 0, 1), values[:, ::-1], np.asfortranarray(values), values.astype(np.float64)):
        assert of(same).bins() == plain.bins()
    assert of(np.full((), 3, np.float32)).count == 1
    for wrong in (np.arange(3), np.array(["a"]), np.array([1j])):
        with pytest.raises(_C.Error, match=r"has no real values \(give floats\)"):
            _C.BlobStatistics().observe(wrong)


def test_moving_averages() -> None:
    statistics = of(np.float32([-1, 2]), np.float32([np.nan]), np.float32([-2, 12, np.inf]))
    assert statistics.average == pytest.approx((-1.1, 3.0))
    assert _C.fit(statistics, "moving_average") == statistics.average
    other = of(np.float32([0, 6]))
    other.merge(statistics)  # one batch and two
    assert other.average == pytest.approx((-2.2 / 3, 4.0))
    assert other.batches == 3


@pytest.mark.parametrize("method", METHODS)
def test_nothing_seen_is_an_error(method: str) -> None:
    with pytest.raises(_C.Error, match=r"no values were observed \(run at least one batch"):
        _C.fit(of(), method)
    with pytest.raises(_C.Error, match="no finite values were observed: all 2 are NaN or infinite"):
        _C.fit(of(np.float32([np.nan, np.inf])), method)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30, deadline=None, database=None)
@given(arrays(np.float32, st.integers(1, 60), elements=FINITE))
def test_ranges_lie_within_what_was_seen(method: str, values: Floats) -> None:
    least, most = _C.fit(of(values), method)
    assert min(values.min(), 0) <= least <= most <= max(values.max(), 0)
    scale, zero = _C.grid_of(least, most)
    assert 2.0**-101 < scale < np.inf
    assert 0 <= zero <= 255


@settings(max_examples=100, deadline=None, database=None)
@given(
    arrays(np.float32, st.integers(1, 300), elements=st.floats(-100, 100, width=32)),
    st.sampled_from([60.0, 90.0, 99.0, 99.9, 100.0]),
)
def test_percentiles_hold_their_share_in_the_narrowest_range(values: Floats, percentile: float) -> None:
    least, most = _C.fit(of(values), f"percentile:{percentile}")
    cut = int(values.size * (100 - percentile) / 100 + 1e-6)
    assert ((values >= least) & (values <= most)).sum() >= values.size - cut
    ordered = np.sort(values)
    for below in range(cut + 1):  # any other choice of what to cut
        low, high = ordered[below], ordered[ordered.size - 1 - (cut - below)]
        width = float(max(high, 0)) - float(min(low, 0))
        assert max(most, 0) - min(least, 0) <= width * (1 + 2.0**-6) + 1e-30


def test_percentiles_of_known_distributions() -> None:
    values = gaussian()
    low, high = np.percentile(values, [0.5, 99.5])
    assert _C.fit(of(values), "percentile:99") == pytest.approx((low, high), rel=0.05)
    rectified = np.maximum(values, 0)
    assert _C.fit(of(rectified), "percentile:99")[0] == 0
    assert _C.fit(of(rectified), "percentile:99")[1] == pytest.approx(np.percentile(rectified, 99), rel=2.0**-7)
    assert _C.fit(of(-rectified), "percentile:99")[1] == 0
    assert _C.fit(of(rectified + 5), "percentile:99")[0] == 5
    tail = np.where(values > 0, np.exp2(4 * values), -0.1 * np.abs(np.tanh(values))).astype(np.float32)
    assert _C.fit(of(tail), "percentile:99.9")[0] == tail.min()  # only the long side is cut


@pytest.mark.parametrize("scale", [1, 1e-20, 1e-36])
@pytest.mark.parametrize("method", ["percentile", "percentile:99", "entropy"])
def test_an_outlier_that_comes_first_changes_little(method: str, scale: float) -> None:
    values = gaussian() * np.float32(scale)
    for outlier in (1e30, -1e30, FLT_MAX):
        found = np.array(_C.fit(of(np.float32([outlier]), values), method)) / scale
        assert np.all((np.abs(found) > 2) & (np.abs(found) < 8)), found


def test_mse_is_no_worse_than_all_values() -> None:
    rng = np.random.default_rng(1)
    for share in (0, 1e-5, 1e-3, 0.02):
        for factor in (3, 10, 100):
            for sides in (1, 2):
                values = gaussian(100_000, seed=factor)
                values = values * np.where(rng.random(values.size) < share, np.float32(factor), np.float32(1))
                values = np.abs(values) if sides == 1 else values
                plain, found = (_C.fit(of(values), method) for method in ("min_max", "mse"))
                assert squared_error(values, found) <= squared_error(values, plain) * (1 + 1e-3)


def test_mse_finds_the_best_clipping() -> None:
    values = gaussian()
    errors = {limit: squared_error(values, (-limit, limit)) for limit in np.linspace(2, 5, 61)}
    found = _C.fit(of(values), "mse")
    assert 3 < found[1] < values.max()
    assert squared_error(values, found) <= min(errors.values()) * 1.005
    rectified = np.maximum(values, 0)
    errors = {limit: squared_error(rectified, (0, limit)) for limit in np.linspace(2, 5, 61)}
    found = _C.fit(of(rectified), "mse")
    assert found[0] == 0
    assert squared_error(rectified, found) <= min(errors.values()) * 1.005


@pytest.mark.parametrize("count", [1000, 30_000, 1_000_000])
@pytest.mark.parametrize("sigma", [1, 1e-30])
def test_entropy_of_a_gaussian(count: int, sigma: float) -> None:
    values = gaussian(count) * np.float32(sigma)
    least, most = _C.fit(of(values), "entropy")
    assert 2 * sigma < -least < 8 * sigma
    assert 2 * sigma < most < 8 * sigma
    rectified = of(np.maximum(values, 0))
    least, most = _C.fit(rectified, "entropy")
    assert least == 0
    assert 2 * sigma < most < 8 * sigma


def test_entropy_clips_rare_outliers_and_keeps_common_ones() -> None:
    values = gaussian()
    rare, common = values.copy(), values.copy()
    rare[:20] *= 100
    common[: values.size // 10] *= 4
    assert _C.fit(of(rare), "entropy")[1] < 10
    assert _C.fit(of(common), "entropy")[1] > 7


def test_methods_by_name() -> None:
    names = ["min_max", "moving_average", "percentile:99.99", "percentile:99.5", "mse", "entropy"]
    assert [_C.fit_method(name) for name in names] == names
    assert _C.fit_method("percentile") == "percentile:99.99"
    for wrong in ("", "minmax", "mse:3", "percentiles:99", "MSE"):
        with pytest.raises(_C.Error, match="known are min_max, moving_average, percentile, mse, entropy"):
            _C.fit_method(wrong)
    for wrong in ("50", "-1", "101", "nan", "inf", "", "99%"):
        with pytest.raises(_C.Error, match="is no percentile"):
            _C.fit_method(f"percentile:{wrong}")


@settings(max_examples=150, deadline=None, database=None)
@given(FINITE, FINITE, st.lists(st.floats(0, 1), max_size=20))
def test_grids(a: float, b: float, shares: list[float]) -> None:
    least, most = min(a, b), max(a, b)
    scale, zero = _C.grid_of(least, most)
    assert np.float32(scale) == scale
    assert 2.0**-101 < scale < np.inf
    assert 0 <= zero <= 255
    points = (np.arange(256) - zero).astype(np.float32) * np.float32(scale)
    assert np.isfinite(points).all()
    assert points[zero] == 0
    values = np.float32([least, most, 0, *(least * (1 - share) + most * share for share in shares)])
    left = through(values, (scale, zero))
    assert left[2] == 0
    most_off = 0.5 if max(-least, most) < FLT_MAX / 2 else 1.0
    assert np.all(np.abs(left - values.astype(np.float64)) <= most_off * scale * (1 + 1e-4))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-44, -1e-44, 1e-38, 3.0, -7.7, 1e30, -1e30, FLT_MAX, -FLT_MAX])
def test_constants_come_back(value: float) -> None:
    values = np.full(10, value, np.float32)
    for method in METHODS:
        limits = _C.fit(of(values), method)
        left = through(values, _C.grid_of(*limits))
        assert np.allclose(left, values.astype(np.float64), rtol=1e-6, atol=1e-29)


def test_special_grids() -> None:
    assert _C.grid_of(0, 0) == (1, 0)
    assert _C.grid_of(0, 255) == (1, 0)
    assert _C.grid_of(-255, 0) == (1, 255)
    assert _C.grid_of(100, 510) == (2, 0)
    assert _C.grid_of(-127.6, 127.4)[1] == 128
    assert _C.grid_of(0, 1e-44) == (2.0**-100, 0)
    for wrong in ((np.nan, 1), (0, np.nan), (-np.inf, 0), (0, np.inf), (1, 0)):
        with pytest.raises(_C.Error, match="is no range"):
            _C.grid_of(*wrong)
