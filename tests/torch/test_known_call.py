"""Calls on known weights: neither Python code nor torch's dispatcher stands before the net, and none is missed."""

import gc
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

import softneuro
from softneuro import torch_backend
from softneuro.torch_backend import _native, registry
from softneuro.torch_backend.call import direct
from softneuro.torch_backend.freshness import fetching, tensors
from tests.torch.conftest import OPTIONS, small

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def image():
    return torch.randn(1, 3, 12, 12)


@pytest.fixture
def around(monkeypatch):
    """By call that went the way around: which."""
    calls: list[str] = []
    of_compiled, of_exported = fetching.FetchingCall.__call__, direct._nothing
    without_net = fetching.FetchingCall.without_net

    def noted(self, *arguments):
        calls.append("compiled")
        return of_compiled(self, *arguments)

    def nothing(*arguments):
        calls.append("exported")
        return of_exported(*arguments)

    def no_net(self, *arguments):
        calls.append("no net")
        return without_net(self, *arguments)

    monkeypatch.setattr(fetching.FetchingCall, "__call__", noted)
    monkeypatch.setattr(fetching.FetchingCall, "without_net", no_net)
    monkeypatch.setattr(direct, "_nothing", nothing)
    return calls


@pytest.fixture(params=["compiled", "exported"])
def ready(request, image, compile_model, around):
    """A function that makes a model callable, called until its weights are known; calls from there on are counted."""

    def make(model, *inputs):
        inputs = inputs or (image,)
        if request.param == "compiled":
            call = compile_model(model, fullgraph=False)  # Dynamo leaves all to the host where modes are on
        else:
            call = torch_backend.load(torch.export.export(model, inputs), **OPTIONS)
        for _ in range(3):
            call(*inputs)
        around.clear()
        return call

    return make


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_types_and_layouts(dtype, layout, image, ready, around) -> None:
    """Halves, and images whose channels come last, are taken as they are; what a region was not made for is not."""
    model, x = small().to(dtype), image.to(dtype).to(memory_format=layout)
    call = ready(model, x)
    for _ in range(3):
        result, expected = call(x), model(x)
        assert (result.dtype, result.stride()) == (expected.dtype, expected.stride())
        torch.testing.assert_close(result, expected, rtol=0.02, atol=0.02)
    assert not around
    model[0].weight.mul_(2)
    torch.testing.assert_close(call(x), model(x), rtol=0.02, atol=0.02)
    assert around


def test_known_weights_and_others(image, ready, around, agree) -> None:
    model = small()
    call = ready(model)
    changes = [
        lambda: model[0].weight.mul_(2),
        lambda: model[1].running_mean.data.add_(1),
        lambda: setattr(model[3].bias, "data", torch.randn(4)),
    ]
    for change in changes:
        for _ in range(3):
            agree(call, model, image)
        assert not around
        change()
        agree(call, model, image)
        assert around
        for _ in range(2):
            agree(call, model, image)
        around.clear()


def test_what_is_not_as_nets_take_it(image, ready, agree) -> None:
    model = small()
    call = ready(model)
    for other in (
        image.to(memory_format=torch.channels_last),
        torch.randn(1, 3, 12, 24)[..., ::2],
        nn.Parameter(image),
        torch._neg_view(image),
    ):
        for _ in range(4):
            torch.testing.assert_close(call(other), model(other), rtol=1e-4, atol=1e-5)
            agree(call, model, image)


def test_several_inputs_and_outputs(image, ready, around) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 4, 3)

        def forward(self, x, y):
            z = (self.first(x) * self.first(y)).relu()
            return self.last(z), z, y

    model, other = Two().eval(), torch.randn(1, 3, 12, 12)
    call = ready(model, image, other)
    for _ in range(2):
        for one, expected in zip(call(image, other), model(image, other), strict=True):
            torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-5)
    assert not around


def test_modes_see_ops(image, ready) -> None:
    class Noting(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[object] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    model = small()
    call = ready(model)
    with Noting() as mode:
        found = call(image)
    torch.testing.assert_close(found, model(image), rtol=1e-4, atol=1e-5)
    assert mode.seen


def test_profiler_sees_the_region(image, ready) -> None:
    call = ready(small())
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        call(image)
    assert any(
        event.key.startswith("softneuro::") and event.key != "softneuro::run_known" for event in seen.key_averages()
    )


def test_listeners_hear_of_the_graph(image, ready, around) -> None:
    call = ready(small())
    heard = []
    direct.listeners.append(heard.append)
    try:
        call(image)
    finally:
        direct.listeners.remove(heard.append)
    assert heard


def test_inference_mode(image, ready) -> None:
    model = small()
    call = ready(model)
    with torch.inference_mode():
        for _ in range(3):
            found = call(image)
        assert found.is_inference()
    torch.testing.assert_close(found, model(image), rtol=1e-4, atol=1e-5)


def test_results_are_fresh(image, ready) -> None:
    call = ready(small())
    first = call(image)
    kept = first.clone()
    call(torch.randn_like(image))
    assert torch.equal(first, kept)
    first.requires_grad_()
    assert not call(image).requires_grad


def test_other_threads_run_meanwhile(ready) -> None:
    """The interpreter is free while a net runs."""
    model, large = small(), torch.randn(1, 3, 400, 400)
    call = ready(model, large)
    expected = call(large)
    wrong = []

    def run() -> None:
        with torch.no_grad():
            for _ in range(5):
                if not torch.equal(call(large), expected):
                    wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_is_kept(image, ready) -> None:
    before = set(registry.all_regions())
    model = small()
    gone = weakref.ref(model)
    call = ready(model)
    call(image)
    assert set(registry.all_regions()) - before
    del call, model
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None
    assert not set(registry.all_regions()) - before


def test_another_module_in_its_place(image, compile_model, around, agree) -> None:
    """One that lies where a module was which is gone is not taken for it."""
    for _ in range(8):
        model = small()
        compiled = compile_model(model)
        for _ in range(3):
            agree(compiled, model, image)
        del compiled, model
        gc.collect()
    assert around


def test_fields_are_found_wherever_they_are_asked_for() -> None:
    """Also within an op, under whose key nothing that is done to tensors is counted."""
    tensors.fields.cache_clear()
    try:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)):
            within = tensors.fields()
        tensors.fields.cache_clear()
        assert within == tensors.fields()
    finally:
        tensors.fields.cache_clear()


def test_too_many() -> None:
    region = softneuro._C.Region("name", "content", "host", {})
    keywords = {"region": region, "host": 0, "otherwise": print, "listeners": [], "weights": _native.KnownWeights()}
    places = {"arguments": 17, "root": -1, "inputs": list(range(17)), "sizes": [], "outputs": [0]}
    keywords |= {"tensor": torch.Tensor, "place": 0}
    with pytest.raises(ValueError, match="more than 16"):
        _native.known_call(**keywords, **places)
    with pytest.raises(ValueError, match="no such argument"):
        _native.known_call(**keywords, **{**places, "inputs": [0], "root": 17})


def test_explain_still_sees_calls(image, compile_model) -> None:
    model = small()
    compiled = compile_model(model)
    for _ in range(3):
        compiled(image)
    assert "conv2d" in torch_backend.explain(compiled, image)
