"""Tiny transformers of Hugging Face's, with masks and without: compiled, exported, of sizes that change."""

import importlib.util

import pytest
import torch

import softneuro.torch_backend as door
from softneuro.error_measure import relative_error
from tests.torch.conftest import OPTIONS

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)
from benchmarks import hugging_face

SAME_WHEN_TINY = {"bert_base_16", "minilm_l6"}  # both are BERT in other sizes
NETWORKS = [name for name in hugging_face.NETWORKS if name not in SAME_WHEN_TINY]
BOUND = 1e-4
pytestmark = pytest.mark.usefixtures("no_grad")


def build(name, **choices):
    """A model that has run once: the library sets hooks up at the first call, by a lock that Dynamo does not trace."""
    model, inputs = hugging_face.build(name, tiny=True, batch=2, **choices)
    model(**inputs)
    return model, inputs


def check(result, expected):
    """Every output is the model's own, NaN where that is."""
    pairs = zip(hugging_face.tensors(result), hugging_face.tensors(expected), strict=True)
    for ours, theirs in pairs:
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert torch.equal(ours.isnan(), theirs.isnan())
        error = relative_error(ours.nan_to_num(), theirs.nan_to_num())
        assert error <= BOUND, f"relative error {error:.2e}"
    assert type(result) is type(expected)


@pytest.fixture
def ran(states):
    """That nets ran all regions."""

    def check_states():
        found = states()
        assert found
        assert all(reason is None for reason in found), found

    return check_states


@pytest.mark.parametrize("name", NETWORKS)
def test_compiled(name, compile_model, ran):
    model, inputs = build(name, masked=True)
    check(compile_model(model)(**inputs), model(**inputs))
    ran()


@pytest.mark.parametrize("name", NETWORKS)
def test_exported_without_masks(name, ran):
    model, inputs = build(name)
    loaded = door.load(torch.export.export(model, (), inputs), **OPTIONS)
    check(loaded(**inputs), model(**inputs))
    ran()


@pytest.mark.parametrize("name", ["bert_base", "gpt2", "llama_grouped", "t5_small"])
def test_attention_spelt_out(name, compile_model, ran):
    model, inputs = build(name, masked=True, attention="eager")
    check(compile_model(model)(**inputs), model(**inputs))
    ran()


@pytest.mark.parametrize("name", ["gpt2", "llama_grouped"])
def test_padding_on_the_left(name, compile_model, ran):
    """The first words of the shorter text see no key at all."""
    model, inputs = build(name, masked=True)
    inputs["attention_mask"] = inputs["attention_mask"].flip(-1).contiguous()
    check(compile_model(model)(**inputs), model(**inputs))
    ran()


@pytest.mark.parametrize(("name", "masked"), [("bert_base", True), ("gpt2", False)])
def test_batch_and_length_change(name, masked, compile_model, ran):
    model, _ = build(name)
    compiled = compile_model(model, dynamic=True)
    for batch, size in ((2, 12), (3, 7)):
        _, inputs = hugging_face.build(name, tiny=True, masked=masked, batch=batch, size=size)
        check(compiled(**inputs), model(**inputs))
    ran()


def test_exported_for_any_batch_and_length(ran):
    model, inputs = build("llama_grouped", masked=True)
    shapes = {name: dict.fromkeys(range(tensor.dim()), torch.export.Dim.DYNAMIC) for name, tensor in inputs.items()}
    loaded = door.load(torch.export.export(model, (), inputs, dynamic_shapes=shapes), **OPTIONS)
    for batch, size in ((2, 12), (3, 7)):
        _, inputs = hugging_face.build("llama_grouped", tiny=True, masked=True, batch=batch, size=size)
        check(loaded(**inputs), model(**inputs))
    ran()


def test_batch_of_images_changes(compile_model, ran):
    model, _ = build("vit_b16")
    compiled = compile_model(model, dynamic=True)
    for batch in (2, 3):
        _, inputs = hugging_face.build("vit_b16", tiny=True, batch=batch)
        check(compiled(**inputs), model(**inputs))
    ran()


def test_words_follow_each_other_in_a_static_cache(compile_model, ran):
    """The cache is written in place: what one call has put there the next reads."""
    model, inputs = build("llama_grouped")
    words = inputs["input_ids"]

    def logits(run):
        cache = hugging_face.library().StaticCache(config=model.config, max_cache_len=16)
        model(words[:, :8], cache=cache, use_cache=True)
        found = [run(words[:, at : at + 1], cache=cache, use_cache=True).logits.clone() for at in range(8, 12)]
        return found, [layer.keys for layer in cache.layers]

    (ours, our_keys), (theirs, their_keys) = logits(compile_model(model, dynamic=False)), logits(model)
    check([*ours, *our_keys], [*theirs, *their_keys])
    ran()
