"""Programs that write to what they are given, with arguments that share memory."""

import copy

import pytest
import torch
from torch import nn

from softneuro.torch_backend import load
from softneuro.torch_backend.compile.tracing.overlaps import extent, meets_itself
from tests.torch.conftest import OPTIONS


class Program(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.linear = nn.Linear(4, 4)
        self.register_buffer("buffer", torch.zeros(4))

    def forward(self, x, y):
        return self.body(self, x, y)


def first_written(self, x, y):
    x.add_(1)
    return self.linear(x + y).relu()


def read_before(self, x, y):
    z = self.linear(y).relu()
    x.mul_(2)
    return z + y, x


def buffer_written(self, x, y):
    self.buffer.add_(x.sum())
    return self.linear(x + y).relu() * self.buffer


def parts_written(self, x, y):
    x[:2].add_(y[:2])
    y[1:].mul_(3)
    return self.linear(x).relu() + y


def nothing_written(self, x, y):
    return self.linear(x).relu(), x.view(-1), y[:1], x


def turned(self, x, y):
    x.t_()
    return self.linear(x + y).relu()


PROGRAMS = [first_written, read_before, buffer_written, parts_written, nothing_written, turned]


def _apart(_, memory):
    return memory[:4].clone(), memory[4:8].clone()


def _same(_, memory):
    x = memory[:4].clone()
    return x, x


def _view(_, memory):
    x = memory[:4].clone()
    return x, x.t()


def _overlapping(_, memory):
    return memory[:4], memory[2:6]


def _neighbours(_, memory):
    return memory[:4], memory[4:8]


def _columns(_, memory):
    wide = memory.view(8, 8)[:4]
    return wide[:, ::2], wide[:, 1::2]


def _two_storages(_, memory):
    array = memory.numpy()
    return torch.from_numpy(array[:4]), torch.from_numpy(array[1:5])


def _a_weight(model, memory):
    return model.linear.weight.detach(), memory[:4].clone()


def _the_buffer(model, memory):
    return memory[:4].clone(), model.buffer.expand(4, 4)


def _repeated(_, memory):
    return memory[:1].expand(4, 4), memory[4:8].clone()


ARGUMENTS = [
    _apart, _same, _view, _overlapping, _neighbours, _columns, _two_storages, _a_weight, _the_buffer, _repeated
]  # fmt: skip


def _outcome(run, model, make):
    """Two calls' results, and what they have left in the arguments and the model."""
    arguments = make(model, torch.arange(64.0).reshape(16, 4) / 64)
    found = []
    for _ in range(2):
        try:
            with torch.no_grad():
                results = run(*arguments)
        except RuntimeError as error:
            found.append(type(error).__name__)
            continue
        results = results if isinstance(results, tuple) else (results,)
        kept = [*results, *arguments, model.buffer, model.linear.weight.detach()]
        found += [tensor.clone() for tensor in kept]
        known = [tensor.untyped_storage().data_ptr() for tensor in (*arguments, model.buffer)]
        found.append([result.untyped_storage().data_ptr() in known for result in results])
        found.append([result.stride() for result in results])
    return found


def _compare(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, torch.Tensor):
            torch.testing.assert_close(ours, theirs)
        else:
            assert ours == theirs


@pytest.fixture(scope="module")
def loaded():
    """Programs and what they are loaded as, each with a model of its own."""
    made = {}
    for body in PROGRAMS:
        torch.manual_seed(0)
        models = [Program(body).eval()]
        models.append(copy.deepcopy(models[0]))
        programs = [torch.export.export(model, (torch.rand(4, 4), torch.rand(4, 4))) for model in models]
        runs = (programs[0].module(), load(programs[1], **OPTIONS, min_region_size=1))
        made[body] = list(zip(runs, models, [copy.deepcopy(m.state_dict()) for m in models], strict=True))
    return made


@pytest.mark.parametrize("make", ARGUMENTS)
@pytest.mark.parametrize("body", PROGRAMS)
def test_a_program_gives_what_the_host_gives(body, make, loaded):
    outcomes = []
    for run, model, state in loaded[body]:
        model.load_state_dict(state)
        outcomes.append(_outcome(run, model, make))
    _compare(outcomes[1], outcomes[0])


@pytest.mark.parametrize("body", PROGRAMS[:4])
def test_a_compiled_model_gives_what_aot_eager_gives(body, compile_model):
    torch.manual_seed(0)
    model, outcomes = Program(body).eval(), []
    for backend in ("aot_eager", "softneuro"):
        torch._dynamo.reset()
        twin = copy.deepcopy(model)
        if backend == "softneuro":
            compiled = compile_model(twin, min_region_size=1)
        else:
            compiled = torch.compile(twin, backend=backend)
        outcomes.append(
            [part for make in (_apart, _same, _view, _overlapping) for part in _outcome(compiled, twin, make)]
        )
    _compare(outcomes[1], outcomes[0])


def test_weights_that_share_memory():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("whole", torch.ones(4))
            self.register_buffer("part", self.whole[:1])

        def forward(self, x):
            self.whole.add_(1)
            return self.linear(x).relu() * self.part + self.whole

    model, x = Model().eval(), torch.rand(2, 4)
    twin = copy.deepcopy(model)
    twin.part = twin.whole[:1]
    ours = load(torch.export.export(twin, (x,)), **OPTIONS, min_region_size=1)
    host = torch.export.export(model, (x,)).module()
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(ours(x), host(x))


def test_what_is_written_apart_runs_as_a_net(states):
    torch.manual_seed(0)
    model = Program(first_written).eval()
    ours = load(torch.export.export(model, (torch.rand(4, 4), torch.rand(4, 4))), **OPTIONS, min_region_size=1)
    with torch.no_grad():
        ours(*_overlapping(model, torch.rand(16, 4)))
        assert states() == []
        ours(*_neighbours(model, torch.rand(16, 4)))
        assert states() == [None]


def test_extents():
    memory = torch.zeros(8, 8)
    start = memory.data_ptr()
    assert extent(memory[1:2, 2:4]) == (start + 40, start + 48)
    assert extent(memory.t()) == (start, start + 256)
    assert extent(memory[:0])[0] == extent(memory[:0])[1]
    assert not any(map(meets_itself, (memory, memory.t(), memory[:, ::3], memory[:1], torch.zeros(()), memory[:0])))
    assert meets_itself(memory[:1].expand(4, 8))
    assert meets_itself(memory.as_strided((4, 4), (2, 1)))
