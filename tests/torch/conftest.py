import gc
import time

import pytest
import torch
from torch import nn

from softneuro.error_measure import relative_error
from softneuro.torch_backend import registry
from softneuro.torch_backend.call.unready import Call
from softneuro.torch_backend.compile.conversion import lowering
from softneuro.torch_backend.compile.ops.reals import numbers
from tests.torch.told import computed_by_host

OPTIONS = {"never_worse": False, "tune": "off"}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 4, 3, stride=2, groups=2)

    def forward(self, x):
        return self.second(self.first(x))


def small():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()


@pytest.fixture
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture
def model():
    return Small().eval()


@pytest.fixture(scope="session", autouse=True)
def _quick_collections():
    """What importing and a first compilation leave behind stays out of collections, which take as long as it is much.

    Nothing else collects: the tests that see what goes away do it themselves.
    """
    torch.compile(lambda x: x + 1, backend="aot_eager", dynamic=True)(torch.zeros(2, 3))
    torch._dynamo.reset()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _guards_are_not_timed():
    """Dynamo times the guards of all that it compiles, and empties the CPU's caches before: thirty milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch._dynamo.guards, "profile_guard_manager", lambda *_: 0.0)
        yield


@pytest.fixture(autouse=True)
def _fresh_dynamo(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def compile_model():
    """Compiles with options that measure nothing, unless others are given."""

    def compile_(model, dynamic=None, fullgraph=True, backend="softneuro", **options):
        if isinstance(model, torch.nn.Module):
            model.eval()
        return torch.compile(
            model, backend=backend, dynamic=dynamic, fullgraph=fullgraph, options={**OPTIONS, **options}
        )

    return compile_


@pytest.fixture(autouse=True)
def earlier_regions(_fresh_dynamo):
    """Regions that were alive before the test: an error that another test keeps may keep its region."""
    return set(registry.all_regions())


@pytest.fixture
def regions(earlier_regions):
    """The test's regions: those that nothing holds, too, until somebody collects them."""
    return lambda: [region for region in registry.all_regions() if region not in earlier_regions]


@pytest.fixture
def image():
    return torch.randn(2, 3, 12, 16)


@pytest.fixture
def states(regions):
    """What the test's regions know: the host's reason or None, by region and signature."""
    return lambda: [shaped.host for region in regions() for shaped in region.shaped.values()]


@pytest.fixture
def entries(earlier_regions):
    """Number of nets that the test's regions have ready in the op's table."""
    return lambda: sum(region.core.nets for region in registry.all_regions() if region not in earlier_regions)


@pytest.fixture
def in_bytes(monkeypatch):
    """Tells of each weight of two axes or more that a layer multiplies by whether it is in the model's own bytes."""
    found = []

    def add(low, kind, inputs, weights=None, *, plain=lowering.Lowering.add, **attributes):
        value = (weights or {}).get("weight")
        quantized = isinstance(value, lowering.QuantizedWeight)
        found.extend([quantized] if quantized or (value is not None and value.dim() > 1) else [])
        return plain(low, kind, inputs, weights, **attributes)

    monkeypatch.setattr(lowering.Lowering, "add", add)
    return found


@pytest.fixture
def slow(monkeypatch):
    """Makes one side of every comparison take longer: "net" or "host", of regions that `which` takes."""

    def make(side, which=lambda region: True, seconds=0.2):
        method = getattr(Call, f"run_{side}")

        def run(call, *arguments):
            if which(call._region):
                time.sleep(seconds)
            return method(call, *arguments)

        monkeypatch.setattr(Call, f"run_{side}", run)

    return make


def same(ours, theirs, tolerance=1e-5, name=""):
    """Shape, order of memory and type are the host's, values but for rounding."""
    found = (ours.shape, ours.stride(), ours.dtype)
    assert found == (theirs.shape, theirs.stride(), theirs.dtype), name
    error = relative_error(numbers(ours), numbers(theirs))
    assert error <= tolerance, f"{name} relative error {error:.2e}"


@pytest.fixture
def agree(states):
    """Runs compiled and eager model, compares, and checks that every region ran its net."""

    def check(compiled, model, *inputs, tolerance=1e-5, nets=True, name=""):
        with torch.no_grad():
            result, expected = compiled(*inputs), model(*inputs)
        pairs = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
        for ours, theirs in pairs:
            same(ours, theirs, tolerance, name)
        if nets:
            found = states()
            assert found
            assert all(reason is None for reason in found), found

    return check


@pytest.fixture
def all_agree(states):
    """Runs every function of a graph, straight and eager, compares each, and checks that nets run all that there is."""

    def check(straight, every, inputs=None, tolerance=1e-5, steps=False):
        inputs = inputs or every.inputs
        with torch.no_grad():
            results, expected = straight(*inputs), every(*inputs)
        for name, ours, theirs in zip(every.names, results, expected, strict=True):
            same(ours, theirs, tolerance, name)
        assert steps or not computed_by_host(straight.graph.partition.host)
        for region in straight.graph.regions:
            assert steps or not (region.region.steps or region.region.declined)
        found = states()
        assert found
        assert all(reason is None for reason in found), found

    return check


@pytest.fixture
def weights_of(monkeypatch):
    """The float weights that layers were given, as NumPy's."""
    found = []

    def memory(value, plain=lowering.memory_of):
        given = plain(value)
        found.extend([given] if not isinstance(given, tuple) else [])
        return given

    monkeypatch.setattr(lowering, "memory_of", memory)
    return found
