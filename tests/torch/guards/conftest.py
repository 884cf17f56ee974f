import pytest
import torch

from softneuro.torch_backend.freshness import guards


@pytest.fixture
def image():
    return torch.randn(1, 4, 8, 8)


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


@pytest.fixture
def watching(monkeypatch):
    """The guards made in the test's course. Dynamo keeps the guards of all that it ever compiled."""
    made: list[guards.ModulesUnchanged] = []
    create = guards.ModulesUnchanged.__init__

    def noted(self, *arguments):
        create(self, *arguments)
        made.append(self)

    monkeypatch.setattr(guards.ModulesUnchanged, "__init__", noted)
    return made
