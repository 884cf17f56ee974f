"""The benchmark of accuracy on digits: its networks, its folds, how it compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
digits = pytest.importorskip("benchmarks.digits")
digit_networks = pytest.importorskip("benchmarks.digit_networks")
accuracy = pytest.importorskip("benchmarks.accuracy")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Two would wait for each other in every layer where other workers run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@torch.no_grad()
def used(name: str) -> torch.nn.Module:
    """A network whose batch norms have seen images, and factors and offsets as if they were trained."""
    torch.manual_seed(0)
    model = digit_networks.NETWORKS[name].build()
    for norm in (module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)):
        norm.weight.uniform_(0.5, 2)
        norm.bias.uniform_(-0.5, 0.5)
    model(digits.everything()[0][:32])
    return model.eval()


@pytest.mark.parametrize("name", digit_networks.NETWORKS)
def test_networks_have_the_size_they_should(name: str) -> None:
    model = digit_networks.NETWORKS[name].build().eval()
    assert 100_000 < sum(p.numel() for p in model.parameters()) < 1_000_000
    with torch.no_grad():
        assert model(digits.everything()[0][:3]).shape == (3, 10)


def test_spread_channels_compute_the_same() -> None:
    model, images = used("mobilenet"), digits.everything()[0][:32]
    with torch.no_grad():
        before = model(images)
        digit_networks.spread_channels(model)
        after = model(images)
    assert float((before - after).norm() / before.norm()) < 1e-5
    blocks = list(digit_networks.bottlenecks(model))
    assert len(blocks) == 5
    for block in blocks:
        # Folded as softneuro and others do it, not as spread_channels looks at it.
        norm, weight = block.depthwise[1], block.depthwise[0].weight
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        ranges = (weight * scale.view(-1, 1, 1, 1)).detach().abs().amax(dim=(1, 2, 3))
        assert float(ranges.max() / ranges.min()) > 100


def test_not_all_activations_pass_factors() -> None:
    with pytest.raises(ValueError, match="ReLU"):
        digit_networks.spread_channels(digit_networks.squeeze_excite())


def test_folds_are_a_partition() -> None:
    images, labels = digits.everything()
    held_back = digits.held_back()
    assert len(held_back) == 5
    assert torch.equal(torch.cat(held_back).sort().values, torch.arange(1797))
    for k, positions in enumerate(held_back):
        train_images, train_labels, test_images, test_labels = digits.fold(k)
        assert torch.equal(test_images, images[positions])
        assert torch.equal(test_labels, labels[positions])
        assert len(train_images) == len(train_labels) == 1797 - len(positions)
        assert torch.bincount(test_labels).min() >= 34  # each digit has its share


def score(gained: int, lost: int, count: int, difference: float) -> float:
    """The score test's statistic, with the likeliest rates for a difference found by trying many."""
    rate = torch.linspace(max(0, -difference), 1, 1_000_001, dtype=torch.float64)[1:-1]  # of those lost
    same = 1 - 2 * rate - difference
    rate, same = rate[same > 0], same[same > 0]
    counts = gained * torch.log(rate + difference) + lost * torch.log(rate) + (count - gained - lost) * torch.log(same)
    variance = count * (2 * float(rate[counts.argmax()]) + difference - difference**2)
    return (gained - lost - count * difference) / variance**0.5


def test_intervals() -> None:
    # Approval of a president, asked twice: 150 and 86 of 1600 changed their minds. By Wald: -0.059 to -0.021, as
    # Agresti, Categorical Data Analysis, has it.
    assert accuracy.interval(86, 150, 1600) == pytest.approx((-0.0587, -0.0213), abs=5e-4)
    for case in ((86, 150, 1600), (12, 2, 50), (3, 9, 1797)):
        low, high = accuracy.interval(*case)
        assert (score(*case, low), score(*case, high)) == pytest.approx((1.96, -1.96), abs=1e-3)
    low, high = accuracy.interval(150, 86, 1600)
    assert (-high, -low) == pytest.approx(accuracy.interval(86, 150, 1600), abs=1e-9)
    # Where no answer differs, the ends are z^2 / (n + z^2).
    z2 = 1.959964**2
    assert accuracy.interval(0, 0, 1797) == pytest.approx((-z2 / (1797 + z2), z2 / (1797 + z2)), rel=1e-5)
    assert accuracy.interval(0, 9, 9)[0] == pytest.approx(-1)


def test_all_images_are_answered_in_batches_of_one_shape() -> None:
    images, labels = digits.everything()
    sizes = set()

    def first_pixels(batch: torch.Tensor) -> torch.Tensor:
        """An answer which depends on the image."""
        sizes.add(len(batch))
        return batch.flatten(1)[:, 200:210]

    found = accuracy.right(first_pixels, images[:70], labels[:70])
    assert sizes == {accuracy.BATCH}
    assert torch.equal(found, images[:70].flatten(1)[:, 200:210].argmax(1) == labels[:70])


def test_variants_are_compared_by_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is wrong about each 0, another that is always right."""
    images, labels = digits.everything()

    def knows(x: torch.Tensor, zero: int) -> torch.Tensor:
        same = (x.flatten(1) @ images.flatten(1).T * 2 - images.flatten(1).square().sum(1)).argmax(1)
        answers = labels[same]
        return torch.nn.functional.one_hot(torch.where(answers == 0, zero, answers), 10).float()

    monkeypatch.setattr(accuracy, "measure", lambda runners, *_: {name: 2.0 + len(name) for name in runners})
    variants = {"a": lambda *_: lambda x: knows(x, 1), "truth": lambda *_: lambda x: knows(x, 0)}
    results = accuracy.measure_folds([torch.nn.Identity()] * 5, variants, 0, lambda *_: None)
    first, second = accuracy.rows_of("net", results)
    zeros = int((labels == 0).sum())
    assert first == ["net, a", f"{100 * (1 - zeros / 1797):.2f} %", "-", "-", "3.00", "-"]
    assert second[:3] == ["net, truth", "100.00 %", f"0, {zeros}"]
    assert second[3].startswith(f"{100 * zeros / 1797:+.2f} (+")
    assert second[4:] == ["7.00", "0.43"]


def test_weights_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def train(name: str, *_: object) -> torch.nn.Module:
        calls.append(name)
        return digit_networks.NETWORKS[name].build().eval()

    monkeypatch.setattr(digit_networks, "trained", train)
    first, again = (accuracy.trained("vit", 1, 5, tmp_path, lambda *_: None) for _ in range(2))
    assert calls == ["vit"]
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    accuracy.trained("vit", 2, 5, tmp_path, lambda *_: None)
    assert calls == ["vit", "vit"]


def test_compiled_models_are_apart() -> None:
    model, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    first, second = accuracy.apart(model), accuracy.apart(model)
    assert torch.equal(first(x), model(x))
    assert first.forward.__code__ is not second.forward.__code__


@torch.no_grad()
def test_a_budget_holds_on_a_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network in bytes recognises digits that were held back as its floats do, but for the drop and one image."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    images, labels, test_images, test_labels = digits.fold(0)
    torch.manual_seed(0)
    convolutions = [torch.nn.Conv2d(1, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, 2, 1), torch.nn.ReLU()]
    model = torch.nn.Sequential(*convolutions, torch.nn.Flatten(), torch.nn.Linear(1024, 10))
    with torch.enable_grad():
        digits.train(model, images, labels, lambda *_: None, epochs=4)
    drop, pins = 0.005, {"keep": "*:qint8", "tune": "off", "never_worse": False}
    hybrid = accuracy.tuned(max_drop=drop, **pins)(model, images, labels)
    floats, bytes_ = (accuracy.right(run, test_images, test_labels).double().mean() for run in (model, hybrid))
    assert floats > 0.9
    assert float((hybrid(test_images[:32]) - model(test_images[:32])).norm()) > 1e-3  # they are in bytes
    assert floats - bytes_ <= drop + 1 / len(test_images)


def test_the_first_folds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "measure", lambda runners, *_: dict.fromkeys(runners, 1.0))
    zeros = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(1024, 10))
    results = accuracy.measure_folds([zeros], {"float32": accuracy.float32}, 0, lambda *_: None, folds=5)
    assert len(results["float32"].right) == len(digits.held_back()[0])
