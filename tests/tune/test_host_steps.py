"""Steps of the host are measured and planned like any layer, with inputs that mean nothing to them."""

import numpy as np
import pytest

import softneuro
from softneuro import _C
from tests.net.test_host_steps import between, convolution, image, reverse
from tests.tune.records import costs


@pytest.fixture(autouse=True)
def _own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path / "costs"))


def tuned(graph, threads=2, **options):
    graph.optimize()
    return softneuro.tune(graph, {"threads": threads, **options})


def assert_close(result, truth):
    assert np.linalg.norm(result - truth) <= 1e-4 * np.linalg.norm(truth)


def the_step(plan):
    (layer,) = [layer for layer in plan.layers if layer.type == "host"]
    return layer


@pytest.mark.parametrize("op", ["reverse", "aten.sort(x0, 1) {a=1, b=[2]}\n\t% 'ü'"])
def test_the_cost_is_kept_under_the_ops_text(op, tmp_path):
    calls = []

    def count(inputs, outputs):
        calls.append(1)
        reverse(inputs, outputs)

    graph = between(count, op)
    first = tuned(graph)
    assert the_step(first).measured
    assert the_step(first).seconds > 0
    (signature,) = {cost.signature for cost in costs(tmp_path / "costs") if cost.descriptor.startswith("host/")}
    assert op in signature
    calls.clear()
    again = tuned(graph)
    assert again.counts["measured"] == 0
    assert the_step(again).seconds == the_step(first).seconds
    assert not calls


def test_a_step_that_refuses_inputs_of_no_meaning_is_guessed():
    serious, refusals = [], []

    def choosy(inputs, outputs):
        if not serious:
            refusals.append(1)
            raise ValueError("never seen")
        reverse(inputs, outputs)

    graph, x = between(choosy), image()
    plan = tuned(graph)
    assert not the_step(plan).measured
    assert the_step(plan).seconds > 0
    assert all(layer.measured for layer in plan.layers if layer.type != "host")
    assert plan.integrated_s > 0  # with zeros for the step's results
    refusals.clear()
    again = tuned(graph)
    assert the_step(again).seconds == the_step(plan).seconds
    assert not refusals  # a later run does not try it again
    net = softneuro.Net(graph, plan, threads=2)
    with pytest.raises(softneuro.Error, match="never seen"):
        net.run([x])
    serious.append(True)
    assert_close(net.run([x])[0], graph.reference([x])[0])


def test_integers_are_places_that_exist():
    seen = []

    def take(inputs, outputs):
        seen.append(inputs[1].copy())
        outputs[0][...] = inputs[0][:, inputs[1]]  # raises for a place beyond the channels

    graph = softneuro.Graph()
    blob = convolution(graph, graph.input("x", (1, 3, 8, 8)), 3, 16, "first")
    places = graph.input("places", (16,), "int64")
    (blob,) = graph.add_host("take", "take", take, [blob, places], [((1, 16, 8, 8), "float32")])
    graph.output(convolution(graph, blob, 16, 4, "last"))
    plan = tuned(graph)
    assert not the_step(plan).measured
    assert plan.counts["guessed"] == 1
    assert all((s == 0).all() for s in seen)
    x, order = image(), np.arange(16)[::-1].copy()
    result = softneuro.Net(graph, plan, threads=2).run([x, order])[0]
    assert_close(result, graph.reference([x, order])[0])


def test_a_plan_file_has_the_step(tmp_path):
    path = tmp_path / "plan.txt"
    graph = between()
    plan = tuned(graph)
    plan.save(str(path), graph)
    assert "host host/" in path.read_text()
    options = _C.parse_options({"plan": str(path), "threads": "2"})
    loaded = _C.load_plan(graph, options, 2)
    assert [layer.descriptor for layer in loaded.layers] == [layer.descriptor for layer in plan.layers]
    x = image()
    results = [softneuro.Net(graph, p, threads=2).run([x])[0] for p in (plan, loaded)]
    np.testing.assert_array_equal(*results)
    other = between(op="another")
    other.optimize()
    assert _C.load_plan(other, options, 2) is None
