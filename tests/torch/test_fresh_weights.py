"""A change of a weight shows in the very next call, however it was made."""

import gc

import pytest
import torch
from torch import nn

from softneuro.torch_backend.call.unready import Call
from tests.torch.conftest import OPTIONS


def small():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3, stride=2)).eval()


def prepared(compile_model, agree, **options):
    model = small()
    compiled = compile_model(model, **options)
    x = torch.randn(1, 3, 12, 12)
    agree(compiled, model, x)
    return model, compiled, x


@pytest.fixture
def ready(compile_model, agree):
    return prepared(compile_model, agree)


@torch.no_grad()
def in_place(model):
    model[0].weight.mul_(2)


@torch.no_grad()
def one_element(model):
    model[0].weight[1, 1, 1, 1] = 50.0


def load(model):
    model.load_state_dict(small().state_dict())


def load_assign(model):
    model.load_state_dict(small().state_dict(), assign=True)


def data_in_place(model):
    model[0].weight.data.mul_(2)


def data_replaced(model):
    model[0].weight.data = torch.randn_like(model[0].weight)


def parameter_replaced(model):
    model[0].weight = nn.Parameter(torch.randn_like(model[0].weight))


def submodule_replaced(model):
    model[1] = nn.Conv2d(8, 4, 3, stride=2).eval()


def through_numpy(model):
    model[0].bias.detach().numpy()[:] = 3.0


def swapped_and_back(model):
    kept = model[0].weight
    model[0].weight = nn.Parameter(kept.detach() * 3)
    del kept


def wrapped_anew(model):
    """The new parameter has the old one's memory, and a version counter that starts again."""
    memory = model[1].weight.data
    with torch.no_grad():
        model[1].weight[1, 1, 1, 1] += 50.0
    del model[1].weight
    model[1].weight = nn.Parameter(memory)


CHANGES = [
    in_place,
    one_element,
    load,
    load_assign,
    data_in_place,
    data_replaced,
    parameter_replaced,
    submodule_replaced,
    through_numpy,
    swapped_and_back,
    wrapped_anew,
]


SETTLED = (one_element, through_numpy)  # change nothing when done again


# The naive routine packs nothing: weights are read where the model has them.
@pytest.mark.parametrize("fixed", ["", "*=conv2d/cpu:float32:nchw/naive"], ids=["packed", "unpacked"])
def test_changes_show(fixed, compile_model, agree):
    model, compiled, x = prepared(compile_model, agree, fixed=fixed)
    for change in [*CHANGES, *CHANGES]:
        with torch.no_grad():
            before = model(x)
        change(model)
        for _ in range(2):  # the net pays for itself meanwhile
            agree(compiled, model, x, name=change.__name__)
        with torch.no_grad():
            assert not torch.equal(before, model(x)) or change in SETTLED


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_around_the_making_of_a_net(change, moment, monkeypatch, compile_model, agree):
    """After partition and before anything is read, and after lowering and before anything is packed."""
    model, x, made = small(), torch.randn(1, 3, 12, 12), []
    lower = Call.lower

    def changed(call):
        if moment == "before" and not made:
            change(model)
        found = lower(call)
        if moment == "after" and not made:
            change(model)
        made.append(1)
        return found

    monkeypatch.setattr(Call, "lower", changed)
    compiled = compile_model(model)
    with torch.no_grad():
        compiled(x)  # of what the weights were, or are
    assert made
    for _ in range(3):
        agree(compiled, model, x, name=change.__name__)


def test_changes_show_without_guards_on_modules(agree):
    unguarded = {"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe}
    model, x = small(), torch.randn(1, 3, 12, 12)
    compiled = torch.compile(model, backend="softneuro", fullgraph=True, options={**OPTIONS, **unguarded})
    agree(compiled, model, x)
    for change in CHANGES:
        change(model)
        for given in (x, torch.randn(2, 3, 9, 9)):
            agree(compiled, model, given, name=change.__name__)


def test_tensors_are_swapped_after_refresh(ready, agree):
    """torch.utils.swap_tensors refuses tensors that something refers to weakly."""
    from softneuro.torch_backend import refresh

    model, compiled, x = ready
    refresh(compiled)
    gc.collect()  # what traced the model refers to its weights, too, in a cycle
    torch.utils.swap_tensors(model[0].weight, nn.Parameter(torch.randn_like(model[0].weight)))
    agree(compiled, model, x)


def test_refresh(ready, agree):
    from softneuro.torch_backend import refresh

    model, compiled, x = ready
    weight = model[1].weight.detach().numpy().reshape(-1)
    weight[7] += 5  # between the places that are looked at
    refresh(compiled)
    agree(compiled, model, x)


def test_two_models_of_one_class(compile_model, agree, entries):
    first, second = small(), small()
    compiled = compile_model(first), compile_model(second)
    x = torch.randn(1, 3, 12, 12)
    for _ in range(3):
        agree(compiled[0], first, x)
        agree(compiled[1], second, x)
    assert entries() == 2


def test_one_graph_for_many_blocks(compile_model, agree, entries):
    """Compiled code shared by equal blocks keeps one net per block."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1)

        def forward(self, x):
            return self.conv(x)

    class Tower(nn.Module):
        def __init__(self, compiled):
            super().__init__()
            options = {"never_worse": False, "tune": "off", "min_region_size": 1}
            self.blocks = nn.ModuleList(Block().eval() for _ in range(4))
            if compiled:
                for block in self.blocks:
                    block.compile(backend="softneuro", options=options)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    model, plain = Tower(True), Tower(False)
    plain.load_state_dict(model.state_dict())
    x = torch.randn(1, 4, 9, 9)
    for _ in range(3):
        agree(model, plain, x)
    assert entries() == 4


MANY = 20  # more changes than are borne one after the other


def test_weights_that_change_at_every_call(ready, agree, entries, regions, caplog):
    """After a while the host takes over; the results stay right, and refresh() ends it.

    A host that was interrupted has earned the time for a net, so whether there is one meanwhile is left open.
    """
    from softneuro.torch_backend import refresh

    model, compiled, x = ready
    for _ in range(MANY):
        in_place(model)
        model[0].weight.data.div_(2)
        agree(compiled, model, x)
    assert "the host runs it for now" in caplog.text
    held_up = [region.given_up for region in regions()]
    assert len(held_up) == 1
    refresh(nn.Linear(1, 1))
    assert [region.given_up for region in regions()] == held_up
    agree(compiled, model, x)
    refresh(compiled)
    assert [region.given_up for region in regions()] == [None]
    agree(compiled, model, x)
    assert entries() == 1


def test_weights_that_change_at_every_other_call(ready, agree, entries):
    model, compiled, x = ready
    for _ in range(MANY):
        in_place(model)
        model[0].weight.data.div_(2)
        agree(compiled, model, x)
        agree(compiled, model, x)
    assert entries() == 1


def test_replaced_at_every_call(ready, agree, caplog):
    model, compiled, x = ready
    for _ in range(MANY):
        parameter_replaced(model)
        agree(compiled, model, x)
    assert "the host runs it for now" in caplog.text


def test_refresh_is_the_models_own(compile_model, agree, entries):
    from softneuro.torch_backend import refresh

    models = small(), small()
    compiled = [compile_model(model) for model in models]
    x = torch.randn(1, 3, 12, 12)
    for ours, plain in zip(compiled, models, strict=True):
        agree(ours, plain, x)
    assert entries() == 2
    refresh(models[0])
    assert entries() == 1
    refresh(nn.Linear(1, 1))
    assert entries() == 1
    refresh()
    assert entries() == 0
    for ours, plain in zip(compiled, models, strict=True):
        agree(ours, plain, x)


def test_equal_weights_are_packed_once(compile_model, agree):
    """Shapes of one model, and models of equal weights, share what is packed."""
    import copy

    from softneuro import Net

    gc.collect()  # what other tests have packed goes now or not at all
    before = Net.shared_packed_bytes()
    model = nn.Sequential(nn.Conv2d(8, 64, 3), nn.BatchNorm2d(64), nn.ReLU()).eval()
    compiled = compile_model(model, dynamic=True)
    agree(compiled, model, torch.randn(2, 8, 12, 12))
    one = Net.shared_packed_bytes() - before
    assert one > 0
    agree(compiled, model, torch.randn(3, 8, 17, 9))
    twin = copy.deepcopy(model)
    agree(compile_model(twin), twin, torch.randn(1, 8, 12, 12))
    assert Net.shared_packed_bytes() - before == one
