"""Ops of the host as steps of a net."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import softneuro

RNG = np.random.default_rng(3)


def convolution(graph, blob, inputs, outputs, name):
    weight = RNG.standard_normal((outputs, inputs, 3, 3), dtype=np.float32)
    return graph.add("conv2d", [blob], name=name, weights={"weight": weight}, padding=[1, 1, 1, 1])


def reverse(inputs, outputs):
    outputs[0][...] = inputs[0][..., ::-1]


def between(function=reverse, op="reverse", name="odd"):
    """A step between two convolutions."""
    graph = softneuro.Graph()
    blob = convolution(graph, graph.input("x", (1, 3, 8, 8)), 3, 16, "first")
    (blob,) = graph.add_host(name, op, function, [blob], [((1, 16, 8, 8), "float32")])
    graph.output(convolution(graph, blob, 16, 4, "last"))
    return graph


def image():
    return RNG.standard_normal((1, 3, 8, 8), dtype=np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_in_the_middle_of_a_graph(threads):
    graph, x = between(), image()
    graph.optimize()
    net = softneuro.Net(graph, threads=threads)
    for _ in range(3):
        (result,) = net.run([x])
        np.testing.assert_allclose(result, graph.reference([x])[0], rtol=1e-4, atol=1e-4)


def test_without_inputs():
    """What a step reads may be constants of its own."""

    def count(inputs, outputs):
        assert not inputs
        outputs[0][...] = np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)

    graph = softneuro.Graph()
    blob = convolution(graph, graph.input("x", (1, 3, 8, 8)), 3, 16, "first")
    (numbers,) = graph.add_host("numbers", "count", count, [], [((1, 16, 1, 1), "float32")])
    graph.output(graph.add("binary", [blob, numbers], function="add"))
    x = image()
    (result,) = softneuro.Net(graph, threads=1).run([x])
    np.testing.assert_allclose(result, graph.reference([x])[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strided", [False, True])
def test_parts_of_a_blob(strided):
    """As they lie, where that is asked for."""
    seen = []

    def note(inputs, outputs):
        seen.extend(array.flags.c_contiguous for array in inputs)
        outputs[0][...] = inputs[0] + inputs[1] + inputs[2][:, None]

    graph = softneuro.Graph()
    blob = graph.add("activation", [graph.input("x", (2, 6, 5))], function="relu")
    left = graph.add("slice", [blob], axis=1, start=0, end=3)
    right = graph.add("slice", [blob], axis=1, start=3, end=6)
    one = graph.add("slice", [graph.add("transpose", [blob], perm=[1, 0, 2])], axis=0, start=2, end=3)
    one = graph.add("reshape", [one], shape=[2, 5])
    inputs = [left, right, one]
    graph.output(graph.add_host("add", "add", note, inputs, [((2, 3, 5), "float32")], strided=strided)[0])
    graph.optimize()
    x = RNG.standard_normal((2, 6, 5), dtype=np.float32)
    plan = softneuro.tune(graph, {"tune": "off", "threads": 1})
    (result,) = softneuro.Net(graph, plan).run([x])
    positive = np.maximum(x, 0)
    np.testing.assert_array_equal(result, positive[:, :3] + positive[:, 3:] + positive[:, 2:3])
    assert seen == [not strided] * 3


def test_two_outputs_one_of_integers():
    def sort(inputs, outputs):
        outputs[1][...] = np.argsort(inputs[0], axis=1)
        outputs[0][...] = np.take_along_axis(inputs[0], outputs[1], 1)

    graph = softneuro.Graph()
    doubled = graph.add("binary", [graph.input("x", (2, 5))], function="mul", scalar=2.0)
    values, places = graph.add_host("sort", "sort", sort, [doubled], [((2, 5), "float32"), ((2, 5), "int64")])
    graph.output(places)
    graph.output(graph.add("activation", [values], function="relu"))
    assert graph.outputs_of(places) == [values, places]
    graph.optimize()
    x = RNG.standard_normal((2, 5), dtype=np.float32)
    found, sorted_ = softneuro.Net(graph).run([x])
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.argsort(x, axis=1))
    np.testing.assert_array_equal(sorted_, np.maximum(np.sort(2 * x, axis=1), 0))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "int8", "uint8", "bool"])
def test_types_of_arrays(dtype):
    seen = []

    def note(inputs, outputs):
        seen.append((inputs[0].dtype, inputs[0].shape, inputs[0].flags.writeable, outputs[0].flags.writeable))
        outputs[0][...] = inputs[0]

    graph = softneuro.Graph()
    blob = graph.input("x", (3, 2), dtype)
    for name in ("one", "two"):
        (blob,) = graph.add_host(name, name, note, [blob], [((3, 2), dtype)])
    graph.output(blob)
    x = np.array([[0, 1], [1, 1], [1, 0]], dtype)
    (result,) = softneuro.Net(graph).run([x])
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x)
    assert seen == [(x.dtype, (3, 2), False, True)] * 2


def test_what_it_raises_names_the_layer_and_leaves_the_net_usable():
    calls = []

    def odd(inputs, outputs):
        calls.append(len(calls))
        if len(calls) % 2 == 0:
            raise IndexError("place 9 of 3")
        reverse(inputs, outputs)

    net = softneuro.Net(between(odd, name="my.odd.layer"), threads=2)
    x = image()
    (expected,) = net.run([x])
    for _ in range(20):  # more runs than a net keeps memories for
        with pytest.raises(softneuro.Error, match=r"my\.odd\.layer.*host/.*IndexError: place 9 of 3"):
            net.run([x])
        np.testing.assert_array_equal(net.run([x])[0], expected)


def test_an_output_of_another_shape_names_the_layer():
    def wrong(inputs, outputs):
        outputs[0][...] = inputs[0][:, :, :5]

    with pytest.raises(softneuro.Error, match=r"layer 'odd' .*ValueError: could not broadcast"):
        softneuro.Net(between(wrong)).run([image()])


def test_inputs_are_not_to_be_written():
    def wrong(inputs, outputs):
        inputs[0][...] = 0

    with pytest.raises(softneuro.Error, match="read-only"):
        softneuro.Net(between(wrong)).run([image()])


def test_eight_threads_at_once():
    net = softneuro.Net(between(), threads=2)
    images = [image() for _ in range(8)]
    expected = [net.run([x])[0] for x in images]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for result, one in zip(pool.map(lambda x: net.run([x])[0], images), expected, strict=True):
                np.testing.assert_array_equal(result, one)


def test_no_step_is_run_for_what_nothing_reads():
    def never(inputs, outputs):
        raise AssertionError

    graph = softneuro.Graph()
    blob = graph.add("activation", [graph.input("x", (4,))], function="relu")
    graph.add_host("dead", "dead", never, [blob], [((4,), "float32")])
    graph.output(blob)
    graph.optimize()
    assert [layer["type"] for layer in graph.layers()] == ["activation"]


def test_no_step_is_folded():
    calls = []

    def count(inputs, outputs):
        calls.append(1)
        reverse(inputs, outputs)

    graph = softneuro.Graph()
    constant = graph.add("constant", [], weights={"value": np.arange(4, dtype=np.float32)})
    graph.output(graph.add_host("count", "count", count, [constant], [((4,), "float32")])[0])
    graph.optimize()
    net = softneuro.Net(graph)
    assert not calls
    np.testing.assert_array_equal(net.run([])[0], [3, 2, 1, 0])
    assert len(calls) == 1


def test_the_structural_hash_has_the_op_and_not_the_function():
    assert between(op="a").structural_hash() == between(lambda *_: None, op="a").structural_hash()
    assert between(op="a").structural_hash() != between(op="b").structural_hash()


def test_steps_need_outputs_and_blobs_that_exist():
    graph = softneuro.Graph()
    with pytest.raises(softneuro.Error, match="no outputs"):
        graph.add_host("a", "a", reverse, [graph.input("x", (2,))], [])
    with pytest.raises(softneuro.Error, match="blob 7"):
        graph.add_host("a", "a", reverse, [7], [((2,), "float32")])
    with pytest.raises(softneuro.Error, match="float99"):
        graph.add_host("a", "a", reverse, [0], [((2,), "float99")])
