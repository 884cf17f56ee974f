"""Preparation and execution: any assignment gives the reference's results, and memory is planned soundly."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from softneuro._C import Error, Graph, Net, registry, testing
from tests.bounds import bound
from tests.graph.networks import Network, assert_close, dense_block, networks, resnet_like


def accepting(graph: Graph) -> list[list[str]]:
    """Every layer's descriptors that may be assigned; an empty text for constants."""
    choices = []
    for layer in graph.layers():
        if layer["type"] == "constant":
            choices.append([""])
            continue
        # Not zeros: routines that leave these out would take them, and the graph's own weights have none.
        weights = {role: np.ones(shape, np.float32) for role, shape in layer["weights"].items()}
        post = {"residual": layer["residual"], "activation": layer["activation"]}
        shapes = [graph.shape(blob) for blob in layer["inputs"]]
        choices.append(testing.accepting(layer["type"], layer["attrs"], weights, shapes, post, 2))
    return choices


def check_memory(net: Net) -> None:
    """No two blobs that live at once share bytes, unless they hold the same data or a step works in place."""
    blobs = net.memory()
    arena = net.stats["arena_bytes"]
    for i, a in enumerate(blobs):
        if a["home"].startswith(("input", "constant")):
            assert a["first"] < 0 or a["content"] != i, "something was written into memory that is not ours"
            continue
        if a["home"] == "arena":
            assert a["offset"] + a["bytes"] <= arena
        for b in blobs[:i]:
            apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
            if a["home"] != b["home"] or apart or a["content"] == b["content"]:
                continue
            in_place = a["offset"] == b["offset"] and a["bytes"] == b["bytes"]
            assert a["last"] < b["first"] + in_place or b["last"] < a["first"] + in_place, (a, b)


def check(network: Network, plan: list[str] | None, threads: int = 2) -> Net:
    net = Net(network.graph, plan, threads=threads)
    check_memory(net)
    outputs = net.run(network.arrays)
    tolerance = max([2e-5, *(bound(descriptor) for descriptor in plan or () if descriptor)])
    for got, expected in zip(outputs, network.reference(), strict=True):
        assert_close(got, expected, tolerance)
    for once, again in zip(outputs, net.run(network.arrays), strict=True):
        np.testing.assert_array_equal(once, again)
    return net


@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(networks(), st.data())
def test_random_graphs_under_random_assignments(network: Network, data: st.DataObject) -> None:
    note(network.graph.canonical())
    check(network, None)
    if data.draw(st.booleans()):
        network.graph.optimize()
    for _ in range(2):
        plan = [data.draw(st.sampled_from(choices)) for choices in accepting(network.graph)]
        note("\n".join(plan))
        check(network, plan, data.draw(st.sampled_from([1, 2, 3])))


@pytest.mark.parametrize("batch", [1, 2])
def test_planned_memory_is_less_than_all_blobs(batch: int) -> None:
    network = resnet_like(batch=batch)
    network.graph.optimize()
    stats = check(network, None).stats
    assert stats["arena_bytes"] < 0.9 * stats["blob_bytes"]  # routines' workspaces included
    border = 4 * sum(map(math.prod, [*network.graph.input_shapes, *network.graph.output_shapes]))
    assert stats["border_bytes"] == border
    assert stats["peak_bytes"] == border + sum(stats[f"{part}_bytes"] for part in ("arena", "packed", "own"))


@pytest.mark.parametrize("layers", [1, 4])
def test_tasks_have_the_same_memory_in_all_steps(layers: int) -> None:
    """However many steps there are, the arena has room for what one of them needs, and for two blobs."""
    graph = Graph()
    blob = graph.input("x", (1, 16, 40, 40))
    for i in range(layers):
        weights = {"weight": np.full((16, 16, 3, 3), 0.01 + i, np.float32)}
        blob = graph.add("conv2d", [blob], weights=weights, padding=[1, 1, 1, 1])
    graph.output(blob)
    descriptor = "conv2d/cpu:float32:nchw4c/bf16x3_scalar{rows=40,split=0,panel=2,depth=0}"
    stats = Net(graph, [descriptor] * layers, threads=2).stats
    blobs = 16 * 40 * 40 * 4
    own = 2 * (42 * 42 * 16 * 4)  # of two tasks: the split input
    assert own < stats["arena_bytes"] < 2.5 * own + 2 * blobs


def test_in_place_and_output_without_copy() -> None:
    network = Network()
    x = network.act(network.input(1, 8, 16, 16), "tanh")
    for _ in range(3):
        x = network.act(x, "tanh")
    network.graph.output(x)
    stats = check(network, None).stats
    assert stats["steps"] == 4
    assert stats["arena_bytes"] == 0  # all four work in the caller's output


def test_concat_in_place() -> None:
    network = Network()
    x = network.input(1, 16, 8, 8)
    parts = [network.act(x, name) for name in ("relu", "tanh", "sigmoid")]
    network.graph.output(network.add("concat", *parts, axis=1))
    stats = check(network, None).stats
    assert stats["steps"] == 3
    assert stats["arena_bytes"] == 0


def test_concat_copies_what_lives_elsewhere() -> None:
    network = Network()
    x = network.input(1, 16, 8, 8)
    y = network.act(x)
    network.graph.output(network.add("concat", y, x, y, axis=1))
    assert check(network, None).stats["steps"] == 3  # the activation, the input, the second y


def test_concats_that_begin_alike_and_end_differently() -> None:
    network = Network()
    x = network.act(network.input(1, 16, 8, 8))
    y = network.act(x, "tanh")
    network.graph.output(network.act(network.add("concat", x, y, axis=1), "sigmoid"))
    network.graph.output(network.act(network.add("concat", x, x, axis=1), "sigmoid"))
    network.graph.output(network.act(y, "sigmoid"))
    check(network, None)


def test_concat_along_channels_of_a_batch_is_a_step() -> None:
    network = Network()
    x = network.input(2, 16, 8, 8)
    network.graph.output(network.add("concat", network.act(x), network.act(x, "tanh"), axis=1))
    assert check(network, None).stats["steps"] == 3


def test_a_dense_block_copies_nothing() -> None:
    network = dense_block(5)
    network.graph.optimize()
    net = check(network, None)
    steps = [layer for layer, *_ in net.profile(network.arrays, 1)]
    types = network.types()
    assert not [s for s in steps if s >= 0 and types[s] == "concat"]


def test_outputs_that_are_inputs_constants_views_or_twice_the_same() -> None:
    network = Network()
    x = network.input(1, 8, 4, 4)
    y = network.act(x)
    view = network.add("reshape", y, shape=[1, 128])
    constant = network.constant(network.values(3, 4))
    for blob in (x, y, y, view, constant, network.add("reshape", x, shape=[128])):
        network.graph.output(blob)
    net = check(network, None)
    outputs = net.run(network.arrays)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(outputs) for b in [*outputs[:i], *network.arrays])


def test_a_residual_read_twice_is_not_overwritten() -> None:
    network = Network()
    x = network.act(network.input(1, 16, 8, 8))
    conv = network.conv(x, 16, padding=[1] * 4)
    y = network.binary("add", x, conv)
    network.graph.output(network.binary("mul", y, y))
    network.graph.optimize()
    for _ in range(3):
        check(network, None)


def test_a_convolution_works_on_its_residual() -> None:
    """Unless partial sums wait in the output."""
    network = Network()
    x = network.conv(network.input(1, 64, 32, 32), 64, size=1)
    y = network.conv(network.conv(x, 64, size=1), 64, size=1)
    network.graph.output(network.conv(network.binary("add", y, x), 64, size=1))
    network.graph.optimize()
    whole = [next(one for one in choices if "/pointwise_" in one) for choices in accepting(network.graph)]
    in_parts = [re.sub("c_block=[0-9]+", "c_block=1", one) for one in whole]
    blob = 4 * 64 * 32 * 32
    assert check(network, whole).stats["arena_bytes"] == 2 * blob
    assert check(network, in_parts).stats["arena_bytes"] == 3 * blob


def test_empty_blobs() -> None:
    network = Network()
    x = network.input(0, 8, 4, 4)
    network.graph.output(network.conv(network.act(x), 4))
    (out,) = Net(network.graph).run(network.arrays)
    assert out.shape == (0, 4, 2, 2)


def test_eight_threads_at_once() -> None:
    network = resnet_like()
    network.graph.optimize()
    net = Net(network.graph, threads=2)
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((1, 3, 32, 32)).astype(np.float32) for _ in range(8)]
    expected = [net.run([x])[0] for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(20):
            if not np.array_equal(net.run([inputs[index]])[0], expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_profile_times_every_step() -> None:
    network = resnet_like()
    net = Net(network.graph)
    steps = net.profile(network.arrays, 3)
    assert len(steps) == net.stats["steps"]
    assert all(seconds >= 0 for *_, seconds in steps)


def other_routine(type_: str) -> str:
    """A routine of another layer type."""
    return next(e["descriptor"] for e in registry() if e["layer"] != type_ and e["available"] and not e["params"])


def test_assignments_that_do_not_fit() -> None:
    network = Network()
    x = network.input(1, 3, 8, 8)
    network.graph.output(network.graph.add("activation", [x], name="act", function="relu"))
    plan: list[Any]
    for plan, text in (
        ([], "0 layers"),
        ([""], "act"),
        ([other_routine("activation")], "act"),
        (["nonsense"], "nonsense"),
    ):
        with pytest.raises(Error, match=text):
            Net(network.graph, plan)


def test_out_of_memory_is_an_error() -> None:
    network = Network()
    x = network.graph.input("x", (1 << 20, 1 << 20, 1 << 10))
    network.graph.output(network.act(network.act(x, "tanh"), "tanh"))
    network.graph.output(network.act(x, "sigmoid"))
    y = network.add("concat", network.act(x, "sigmoid"), network.act(x), axis=2)
    network.graph.output(network.add("reduce", y, function="sum", axes=[0, 1, 2]))
    with pytest.raises(Error, match="bytes"):
        Net(network.graph)
