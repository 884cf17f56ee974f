"""A cache that a region writes to: one region, the right rows whoever runs, and the host wherever a net could not."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from softneuro import torch_backend
from softneuro.error_measure import relative_error
from softneuro.torch_backend import registry
from softneuro.torch_backend.budgets.regions import listening
from softneuro.torch_backend.call import unready
from softneuro.torch_backend.call.direct import call_region
from tests.torch.conftest import OPTIONS
from tests.torch.test_in_place import ROWS, Cached, caches

JUDGED = {"never_worse": True, "tune": "profile", "time_budget_s": 1}


def both(model, compiled, given, rows=2, start=3, seed=0):
    """Runs either on a cache of its own; theirs is what is right."""
    torch.manual_seed(seed)
    x, expected = torch.randn(1, rows, 8, dtype=given[0].dtype), [cache.clone() for cache in given]
    wanted = model(x, *expected, torch.tensor(start))
    got = compiled(x, *given, torch.tensor(start))
    return (got, *given), (wanted, *expected)


def assert_right(made, right, bound=1e-5):
    for ours, theirs in zip(made, right, strict=True):
        assert relative_error(ours.float().numpy(), theirs.float().numpy()) < bound


@pytest.mark.parametrize("how", ["index_copy_", "index_put_"])
def test_one_region(how, no_grad):
    model = Cached(how).eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    with listening() as graphs:
        assert_right(*both(model, compiled, caches()))
    (graph,) = graphs
    (region,) = graph.regions
    assert len(region.written) == 2
    assert not any("index" in op for op in graph.partition.host)
    (known,) = region.shaped.values()
    assert sum("put/" in layer.descriptor for layer in known.plan.layers) == 2
    calls = [node for node in graph.partition.module.graph.nodes if node.op == "call_function"]
    assert not any("index" in str(node.target) for node in calls)  # nobody writes it once more


def test_versions_grow_as_in_eager(no_grad):
    compiled = torch.compile(Cached().eval(), backend="softneuro", options=OPTIONS)
    keys, values = caches()
    for _ in range(3):
        before = keys._version
        compiled(torch.randn(1, 2, 8), keys, values, torch.tensor(3))
        assert keys._version > before


@pytest.mark.parametrize("loser", ["net", "host"])
def test_either_side_may_win(loser, compile_model, slow, no_grad):
    model = Cached().eval()
    compiled = compile_model(model, **JUDGED)
    slow(loser)
    given = [torch.randn_like(cache) for cache in caches()]
    for start in (0, 2, 5):
        made, right = both(model, compiled, given, start=start, seed=start)
        assert_right(made, right)
        if loser == "net" and start:
            assert all(torch.equal(ours, theirs) for ours, theirs in zip(made, right, strict=True))


def test_an_inexact_net_leaves_nothing_behind(compile_model, monkeypatch, no_grad):
    """What it has written while it was judged is written over."""
    run_net = unready.Call.run_net

    def inexact(call, ready):
        done = run_net(call, ready)
        for place in call._region.written:
            call._inputs[place].mul_(1.01)
        return done

    model = Cached().eval()
    compiled = compile_model(model, **JUDGED)
    with monkeypatch.context() as patched:
        patched.setattr(unready.Call, "run_net", inexact)
        given = [cache + 0 for cache in caches()]
        made, right = both(model, compiled, given)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(made, right, strict=True))
    (known,) = registry.all_regions()[-1].shaped.values()
    assert known.host is not None
    assert "max_error" in known.host


def test_the_error_is_that_of_what_is_written(compile_model, monkeypatch, no_grad):
    """Both sides write to the same memory, so what one has written has to be kept for the comparison."""
    run_net, errors, error = unready.Call.run_net, [], unready.Call.error

    def inexact(call, ready):
        done = run_net(call, ready)
        call._inputs[min(call._region.written)][:, :, 3] *= 1.5
        return done

    def noted(call, max_error):
        errors.append(error(call, max_error))
        return errors[-1]

    monkeypatch.setattr(unready.Call, "run_net", inexact)
    monkeypatch.setattr(unready.Call, "error", noted)
    model = Cached().eval()
    both(model, compile_model(model, **JUDGED), caches())
    assert errors[0] > 0.1


def test_a_place_beyond_the_end_leaves_what_eager_leaves(no_grad):
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    both(model, compiled, caches())
    given = [torch.randn_like(cache) for cache in caches()]
    expected = [cache.clone() for cache in given]
    x = torch.randn(1, 2, 8)
    for run, own in ((model, expected), (compiled, given)):
        with pytest.raises(IndexError):
            run(x, *own, torch.tensor(ROWS - 1))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(given, expected, strict=True))


def test_nothing_is_written_after_a_rejection(no_grad):
    """A word that there is not: eager raises before it writes."""

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.inner = nn.Embedding(5, 8), Cached()

        def forward(self, ids, keys, values, start):
            return self.inner(self.words(ids), keys, values, start)

    compiled = torch.compile(Words().eval(), backend="softneuro", options=OPTIONS)
    given = [torch.randn_like(cache) for cache in caches()]
    compiled(torch.tensor([[1, 2]]), *given, torch.tensor(3))
    before = [cache.clone() for cache in given]
    with pytest.raises(IndexError):
        compiled(torch.tensor([[1, 7]]), *given, torch.tensor(6))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(given, before, strict=True))


def test_other_strides_in_a_call(no_grad, caplog):
    """The host runs it: a net would be given a copy."""
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    both(model, compiled, caches())
    region = registry.all_regions()[-1]
    inputs = [torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype) for node in region.region.inputs]
    by_shape = {weight.shape: weight for weight in model.parameters()}
    weights = [by_shape[node.meta["val"].shape] for node in region.region.weights]
    for place in region.written:
        inputs[place] = torch.randn(1, 2, 2 * ROWS, 4)[:, :, :ROWS]
    x = next(i for i, tensor in enumerate(inputs) if tensor.shape[-1] == 8)
    inputs[x] = torch.randn_like(inputs[x])
    dense = [tensor.clone(memory_format=torch.contiguous_format) for tensor in inputs]
    with caplog.at_level("INFO", logger="softneuro.torch_backend"):
        call_region(region.handle, inputs, [weight.clone() for weight in weights], [])  # of which there is no net
        assert "is not contiguous" in caplog.text
        results = call_region(region.handle, inputs, weights, [])
    expected = call_region(region.handle, dense, weights, [])
    for place in region.written:
        assert not inputs[place].is_contiguous()
        assert relative_error(inputs[place].numpy(), dense[place].numpy()) < 1e-5
        assert any(result is inputs[place] for result in results)
    assert_right(
        [r for r, u in zip(results, region.updates, strict=True) if u is None],
        [r for r, u in zip(expected, region.updates, strict=True) if u is None],
    )


def test_one_cache_for_both(no_grad):
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given, expected = torch.zeros(1, 2, ROWS, 4), torch.zeros(1, 2, ROWS, 4)
    x = torch.randn(1, 2, 8)
    wanted = model(x, expected, expected, torch.tensor(3))
    got = compiled(x, given, given, torch.tensor(3))
    assert_right((got, given), (wanted, expected))


def test_parts_of_one_memory(no_grad):
    """After calls with caches of their own, and the other way round."""
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    x = torch.randn(1, 2, 8)
    for overlap in (0, 1, 0):
        made = []
        for run in (model, compiled):
            memory = torch.arange(4.0 * ROWS * 4).reshape(4, ROWS, 4)
            keys, values = memory[None, 0:2], memory[None, 2 - overlap : 4 - overlap]
            made.append((run(x, keys, values, torch.tensor(3)), memory))
        assert_right(made[1], made[0])


def test_written_twice(no_grad):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, cache, places):
            cache.index_copy_(1, places, self.linear(x))
            cache.index_copy_(1, places + 1, torch.relu(self.linear(x)))
            return torch.softmax(self.linear(cache), -1)

    model = Twice().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given, expected = torch.randn(2, 8, 4), None
    expected = given.clone()
    x, places = torch.randn(2, 2, 4), torch.tensor([1, 4])
    for _ in range(2):
        wanted = model(x, expected, places)
        assert_right((compiled(x, given, places), given), (wanted, expected))


def test_one_row_for_all_places(no_grad):
    class Filled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, cache, places):
            cache[:, places] = self.linear(x)
            return torch.softmax(self.linear(cache), -1)

    model = Filled().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given = torch.randn(2, 8, 4)
    expected = given.clone()
    for x in (torch.randn(4), torch.randn(2, 1, 4), torch.randn(2, 3, 4)):
        places = torch.tensor([1, -1, 4])
        wanted = model(x, expected, places)
        assert_right((compiled(x, given, places), given), (wanted, expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves(dtype, no_grad):
    model = Cached().eval().to(dtype)
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given = [cache.to(dtype) for cache in caches()]
    with listening() as graphs:
        for start in (0, 2):
            assert_right(*both(model, compiled, given, start=start, seed=start), bound=2e-2)
    assert [len(graph.regions) for graph in graphs] == [1]
    (known,) = graphs[0].regions[0].shaped.values()
    assert known.host is None


def test_threads_with_caches_of_their_own(no_grad):
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    both(model, compiled, caches())
    failed = []

    def work(seed):
        with torch.no_grad():
            given = [cache + seed for cache in caches()]
            generator = torch.Generator().manual_seed(seed)
            for start in range(8):
                x, expected = torch.randn(1, 2, 8, generator=generator), [cache.clone() for cache in given]
                wanted = model(x, *expected, torch.tensor(start))
                try:
                    assert_right((compiled(x, *given, torch.tensor(start)), *given), (wanted, *expected))
                except AssertionError as error:
                    failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_calibration(tmp_path, no_grad):
    """Observed calls write what others write, and so do calls of plans that were tuned on what was observed."""
    model = Cached().eval()
    compiled = torch.compile(model, backend="softneuro", options=OPTIONS)
    given = list(caches())
    x = torch.randn(1, 2, 8)
    expected = [cache.clone() for cache in given]
    wanted = model(x, *expected, torch.tensor(3))
    torch_backend.calibrate(compiled, [(x, *given, torch.tensor(3))] * 3, out=tmp_path / "ranges")
    assert_right(given, expected)
    assert_right((compiled(x, *given, torch.tensor(3)), *given), (wanted, *expected))


def test_tuning_ahead(no_grad):
    model = Cached().eval()
    given = list(caches())
    expected = [cache.clone() for cache in given]
    x = torch.randn(1, 2, 8)
    model(x, *expected, torch.tensor(3))
    plan = torch_backend.tune(model, (x, *given, torch.tensor(3)), time_budget_s=1)
    assert sum("put/" in layer.descriptor for layer in plan.layers) == 2
    assert_right(given, expected)


@pytest.mark.parametrize("how", ["index_copy_", "index_put_"])
def test_inductor_as_the_host(how, no_grad):
    """It is told that the region changes its arguments; what it runs itself stays functional."""
    model = Cached(how).eval()
    compiled = torch.compile(model, backend="softneuro", options={**OPTIONS, "host": "inductor"})
    given = list(caches())
    with listening() as graphs:
        for start in (0, 2):
            made, right = both(model, compiled, given, start=start, seed=start)
            assert_right(made, right)
    assert [len(region.written) for region in graphs[0].regions] == [2]
    assert not any("index" in op for op in graphs[0].partition.host)


@pytest.mark.parametrize("direct", [True, False])
def test_inductor_with_and_without_its_wrapper(direct, no_grad):
    """A graph of a region alone is called past it. A cache that inductor's own ops read later is functional."""

    class Read(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Cached()

        def forward(self, x, keys, values, start):
            made = self.inner(x, keys, values, start)
            return made if direct else (made, torch.sort(keys.flatten())[0])

    model = Read().eval()
    compiled = torch.compile(model, backend="softneuro", options={**OPTIONS, "host": "inductor"})
    given, expected = list(caches()), list(caches())
    with listening() as graphs:
        for start in (0, 2, 4):
            x = torch.randn(1, 2, 8)
            wanted, got = model(x, *expected, torch.tensor(start)), compiled(x, *given, torch.tensor(start))
            wanted, got = ([wanted], [got]) if direct else (wanted, got)
            assert_right([*got, *given], [*wanted, *expected])
    (graph,) = graphs
    assert (graph.direct is not None) == direct
    assert sum(len(region.written) for region in graph.regions) == (2 if direct else 0)


class Kept(nn.Module):
    """A model with caches of its own, as programs for a static cache have them."""

    def __init__(self):
        super().__init__()
        self.inner = Cached()
        for name, cache in zip(("keys", "values"), caches(), strict=True):
            self.register_buffer(name, cache)

    def forward(self, x, start):
        return self.inner(x, self.keys, self.values, start)


def test_program_with_buffers(no_grad):
    model = Kept().eval()
    program = torch.export.export(model, (torch.randn(1, 2, 8), torch.tensor(1)))
    loaded = torch_backend.load(program, **OPTIONS)
    given, expected = list(loaded.weights[-2:]), list(caches())
    assert [cache.shape for cache in given] == [cache.shape for cache in expected]
    for start in (0, 2, 4):
        x = torch.randn(1, 2, 8)
        wanted = model.inner(x, *expected, torch.tensor(start))
        assert_right([loaded(x, torch.tensor(start)), *given], [wanted, *expected])
    (region,) = loaded._graph.regions
    assert len(region.written) == 2


def test_program_with_arguments(no_grad):
    """Arguments of a program may lie otherwise than those that it was made with, and may share memory."""
    model = Cached().eval()
    x, start = torch.randn(1, 2, 8), torch.tensor(3)
    loaded = torch_backend.load(torch.export.export(model, (x, *caches(), start)), **OPTIONS)
    wide = [torch.randn(1, 2, 2 * ROWS, 4)[:, :, :ROWS] for _ in range(2)]
    shared = torch.randn(1, 2, ROWS, 4)
    for given in (caches(), wide, [shared, shared], caches()):
        expected = [cache.clone() for cache in given] if given[0] is not given[1] else [shared.clone()] * 2
        wanted = model(x, *expected, start)
        assert_right([loaded(x, *given, start), *given], [wanted, *expected])
    (region,) = loaded._graph.regions
    assert len(region.written) == 2
