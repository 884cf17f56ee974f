"""Training, gradients and other dtypes belong to the host."""

import copy
import warnings

import pytest
import torch


def test_other_dtypes_stay_with_the_host(model, compile_model, states):
    other = model.double()
    x = torch.randn(1, 3, 12, 12, dtype=torch.float64)
    with torch.no_grad():
        assert torch.equal(compile_model(other)(x), other(x))
    assert states() == []


def test_gradients_are_the_hosts(model, compile_model):
    compiled, plain = compile_model(model), copy.deepcopy(model)
    x, y = torch.randn(2, 3, 12, 12, requires_grad=True), None
    with pytest.warns(UserWarning, match="no_grad"):
        result = compiled(x)
    y = x.detach().clone().requires_grad_()
    expected = plain(y)
    assert torch.equal(result, expected)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert torch.equal(x.grad, y.grad)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


def test_training_between_calls(model, compile_model, agree):
    compiled = compile_model(model)
    x = torch.randn(2, 3, 12, 12)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        agree(compiled, model, x)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_input_requires_grad_but_frozen_weights(model, compile_model):
    model.requires_grad_(False)
    compiled = compile_model(model)
    x = torch.randn(2, 3, 12, 12, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad is not None


def test_one_warning_about_gradients(model, compile_model):
    compiled = compile_model(model)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for size in (12, 13, 14):
            compiled(torch.randn(1, 3, size, size))
    assert sum("torch.no_grad()" in str(w.message) for w in seen) == 1
