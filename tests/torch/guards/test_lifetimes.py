"""What guards asked only after a change keep alive: no model and no input."""

import gc
import weakref

import pytest
import torch

from tests.torch.guards.model import Model


@pytest.mark.parametrize("watch", [True, False])
def test_models_are_not_kept_alive(image, watch, watching, compile_model) -> None:
    model = Model().eval()
    compiled = compile_model(model, min_region_size=1, shortcuts=watch)
    for _ in range(3):
        compiled(image)
    gone = [weakref.ref(model), weakref.ref(model.blocks[0]), weakref.ref(model.last.weight)]
    del model, compiled
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
    assert all(not w.all_seen for w in watching)


def test_nothing_waits_for_the_collector(compile_model) -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.randn(1, 4, 8, 8)
        model = Model().eval()
        compile_model(model, min_region_size=1)(x)
        gone = weakref.ref(x)
        del x
        assert gone() is None
    finally:
        gc.enable()
