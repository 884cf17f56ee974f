"""The options keep and fixed: what users ask of single layers, by name."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from softneuro.option_texts import in_floats

RNG = np.random.default_rng(0)
NAMES = st.text("ab.:{}=* ?/", min_size=1, max_size=8)
ISA = _C.available_isas()[0]


def weight(*shape: int) -> dict[str, Any]:
    return {"weight": RNG.standard_normal(shape, dtype=np.float32) / 8}


def network(size: int = 8) -> softneuro.Graph:
    """Three convolutions, of which the last two are equal, a pooling and a head."""
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 16, size, size))
    for name in ("stem", "body.0", "body.1"):
        blob = graph.add("conv2d", [blob], name=name, weights=weight(16, 16, 3, 3), padding=[1] * 4)
    blob = graph.add("adaptive_pool2d", [blob], name="pool", function="avg", output_size=[1, 1])
    blob = graph.add("reshape", [blob], name="flat", shape=[1, 16])
    graph.output(graph.add("linear", [blob], name="head", weights=weight(10, 16)))
    graph.optimize()
    return graph


def chosen(plan: softneuro.Plan) -> dict[str, str]:
    return {layer.name: layer.descriptor for layer in plan.layers}


def off(**options: Any) -> dict[str, Any]:
    return {"tune": "off", "threads": 1, **options}


NAIVE = "conv2d/cpu:float32:nchw/naive"
DEPTHWISE = next(
    entry["descriptor"] for entry in softneuro.registry() if f"c/depthwise_{ISA}" in str(entry["descriptor"])
)
ROWS = f"conv2d/cpu:float32:nchw/direct_{ISA}"


@settings(deadline=None, database=None)
@given(pattern=NAMES, form=st.sampled_from(["float32", "bfloat16", "cpu:float32:nchw", "cpu:float32:nchw16c"]))
def test_kept_forms_are_read_back(pattern: str, form: str) -> None:
    try:
        options = _C.parse_options({"keep": f"{pattern}:{form}"})
    except _C.Error:
        assert not pattern.strip() or set(pattern) & set("{}: "), pattern
        return
    assert options.keep == f"{pattern.strip()}:{form}"
    assert _C.parse_options({"keep": options.keep}).keep == options.keep


@settings(deadline=None, database=None)
@given(items=st.lists(st.tuples(st.text("ab.*?_=:", min_size=1, max_size=6), st.integers(0, 10**6)), max_size=4))
def test_fixed_routines_are_read_back(items: list[tuple[str, int]]) -> None:
    """However separated; schemas of several inputs and params have commas of their own."""
    routines = [
        entry["descriptor"]
        for entry in softneuro.registry()
        if entry["layer"] in ("conv2d", "matmul", "binary") and not entry.get("params")
    ]
    texts = [f"{pattern}={routines[number % len(routines)]}" for pattern, number in items]
    for separator in (",", ";", ", ", " ; "):
        assert _C.parse_options({"fixed": separator.join(texts)}).fixed == ";".join(texts)


def test_params_have_commas() -> None:
    direct = next(one for one in _C.testing.accepting("conv2d", {}, weight(8, 8, 1, 1), [(1, 8, 4, 4)]) if "," in one)
    assert _C.parse_options({"fixed": f"a={direct},b={direct}"}).fixed == f"a={direct};b={direct}"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("keep", "head", "no pattern of names"),
        ("keep", ":float32", "no pattern of names"),
        ("keep", "head:float33", "no pattern of names"),
        ("keep", "a:float32,", "no pattern of names"),
        ("fixed", "head", "no pattern of names"),
        ("fixed", "head=", "no pattern of names"),
        ("fixed", "head=conv3/x", "did you mean 'conv2d'"),
        ("fixed", "head=conv2d/cpu:float32:nchw/naiv", f"did you mean '{NAIVE}'"),
        ("fixed", f"head={NAIVE}{{rows=1}}", f"did you mean '{NAIVE}'"),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(_C.Error, match=f"option {name}.*{said}"):
        _C.parse_options({name: text})


@pytest.mark.parametrize("mode", ["off", "cached", "profile"])
def test_fixed_layers_run_that_routine(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is no candidate, and not for the layer that is equal but for its name."""
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", str(tmp_path))
    graph = network()
    options = {"tune": mode, "threads": 1, "time_budget_s": 1}
    plan = softneuro.tune(graph, {**options, "fixed": f"body.0={NAIVE}, stem={ROWS}"})
    assert chosen(plan)["body.0"] == NAIVE
    assert chosen(plan)["stem"].startswith(ROWS)
    assert chosen(plan)["body.1"] != NAIVE
    x = RNG.standard_normal((1, 16, 8, 8), dtype=np.float32)
    assert relative_error(softneuro.Net(graph, plan).run([x])[0], graph.reference([x])[0]) < 1e-5
    assert NAIVE not in chosen(softneuro.tune(graph, options)).values()


def test_params_may_be_fixed_and_the_last_counts() -> None:
    graph = network()
    accepting = _C.testing.accepting("conv2d", {"padding": [1] * 4}, weight(16, 16, 3, 3), [(1, 16, 8, 8)])
    wanted = [one for one in accepting if "{" in one][-1]
    plan = chosen(softneuro.tune(graph, off(fixed=[f"body*={NAIVE}", f"*.1={wanted}"])))
    assert plan["body.0"] == NAIVE
    assert plan["body.1"] == wanted


def test_kept_layers_read_and_write_that() -> None:
    graph = network()
    assert "nchw/" not in chosen(softneuro.tune(graph, off()))["body.0"]
    plan = chosen(softneuro.tune(graph, off(keep="body*:cpu:float32:nchw, stem:float32")))
    assert all("/cpu:float32:nchw/" in plan[name] for name in ("body.0", "body.1"))
    dtypes = off(schemas="float32,bfloat16", max_error=0.1, keep="*:float32")
    assert not any("bfloat16:" in one for one in chosen(softneuro.tune(graph, dtypes)).values())


def pair() -> softneuro.Graph:
    """What a fusion computes, if a weight is sparse."""
    graph, blob = softneuro.Graph(), -1
    blob = graph.input("x", (1, 16, 12, 12))
    for name in ("first", "second"):
        sparse = np.zeros((16, 16, 3, 3), np.float32)
        sparse[::9, ::5, 1] = 1
        blob = graph.add("conv2d", [blob], name=name, weights={"weight": sparse}, padding=[1] * 4)
    graph.output(blob)
    graph.optimize()
    return graph


def test_fusions_are_fixed_at_their_last_layer_and_kept_out() -> None:
    graph = pair()
    fused = f"conv2d_pair/cpu:float32:nchw/fused_bands_{ISA}"
    plan = chosen(softneuro.tune(graph, off(fixed=f"second={fused}")))
    assert plan["first"] == ""
    assert plan["second"].startswith(fused)
    with pytest.raises(_C.Error, match=r"layer 'first'.*no conv2d_pair ends in it"):
        softneuro.tune(graph, off(fixed=f"first={fused}"))
    with pytest.raises(_C.Error, match=r"layer 'second'.*the layers around it"):
        softneuro.tune(graph, off(fixed=f"second={fused};first={NAIVE}"))
    plan = chosen(softneuro.tune(graph, off(fixed=f"first={NAIVE}")))
    assert plan["first"] == NAIVE
    assert plan["second"]
    form = next(one for one in chosen(softneuro.tune(network(), off())).values() if "/cpu:float32:nchw" in one)
    blocked = chosen(softneuro.tune(graph, off(keep=f"second:{form.split('/')[1]}")))
    assert blocked["first"]
    assert "/cpu:float32:nchw/" not in blocked["second"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fixed": "head=conv2d/cpu:float32:nchw/naive"}, r"layer 'head': .*is of type linear"),
        ({"fixed": f"body.0={DEPTHWISE}"}, r"layer 'body.0': .*declines: .*the nearest that there is: conv2d/"),
        ({"keep": "head:bfloat16"}, r"layer 'head': no routine reads and writes as keep=head:bfloat16 .*float32:nchw"),
        ({"keep": "head:cpu:float32:nhwc", "fixed": "head=linear/cpu:float32:nchw/naive"}, r"that fixed=.* allows"),
    ],
)
def test_nothing_left_names_layer_value_and_remedy(options: dict[str, str], said: str) -> None:
    with pytest.raises(_C.Error, match=said):
        softneuro.tune(network(), off(**options))


def test_patterns_pass_layers_of_other_types_by() -> None:
    plan = chosen(softneuro.tune(network(), off(fixed=f"*={NAIVE}")))
    assert [name for name, descriptor in plan.items() if descriptor == NAIVE] == ["stem", "body.0", "body.1"]


def test_patterns_that_match_nothing_are_told(caplog: pytest.LogCaptureFixture) -> None:
    softneuro.tune(network(), off(keep="haed:float32,body*:float32", fixed=f"stam*={NAIVE}"))
    said = [record.message for record in caplog.records if "matches no layer" in record.message]
    assert len(said) == 2
    assert "keep: 'haed'" in said[0]
    assert "are 'head', " in said[0]
    assert "fixed: 'stam*'" in said[1]
    assert "are 'stem', " in said[1]


@settings(deadline=None, database=None, max_examples=30)
@given(pattern=st.text("bdehotsy.01*?", max_size=8))
def test_patterns_are_those_of_shells(pattern: str) -> None:
    """Compared on a graph that is never run: what is fixed to the naive routine."""
    graph = softneuro.Graph()
    blob = graph.input("x", (1, 4, 2, 2))
    names = ["stem", "body.0", "body.1", "head"]
    for name in names:
        blob = graph.add("conv2d", [blob], name=name, weights=weight(4, 4, 1, 1))
    graph.output(blob)
    if not pattern:
        return
    plan = chosen(softneuro.tune(graph, off(fixed=f"{pattern}={NAIVE}")))
    assert [name for name in names if plan[name] == NAIVE] == [n for n in names if fnmatch.fnmatchcase(n, pattern)]


def test_plans_for_other_shapes_are_as_asked() -> None:
    plan = softneuro.tune(network(), off(fixed=f"body.0={NAIVE}", keep="body.1:cpu:float32:nchw"))
    other = chosen(plan.carry_over(network(10), 1))
    assert other["body.0"] == NAIVE
    assert "/cpu:float32:nchw/" in other["body.1"]


def test_a_file_with_another_plan_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, graph = str(tmp_path / "a.plan"), network()
    assert NAIVE not in chosen(softneuro.tune(graph, off(plan=path))).values()
    fixed = off(plan=path, fixed=f"body.0={NAIVE}")
    for told in (1, 0):
        caplog.clear()
        assert chosen(softneuro.tune(graph, fixed))["body.0"] == NAIVE
        said = [record.message for record in caplog.records if "layer 'body.0' runs" in record.message]
        assert len(said) == told
    assert chosen(softneuro.tune(graph, off(plan=path)))["body.0"] == NAIVE


def test_floats_leave_out_what_asks_for_bytes() -> None:
    """In any spelling that the core reads; all else stays, and so do options that were not given."""
    asked = {
        "keep": "a*:qint8, b:float32, n:c:cpu:qint8:nhwc, d:cpu:float32:nchw",
        "fixed": f"a={NAIVE}, b=linear/cpu:qint8:nchw/int8_scalar; c=dynamic_linear/cpu:float32:nchw/naive",
        "calibration": "ranges.txt",
        "threads": "2",
    }
    left = {"keep": "b:float32,d:cpu:float32:nchw", "fixed": f"a={NAIVE}", "threads": "2"}
    assert in_floats(asked) == left
    assert in_floats(left) == left
    assert in_floats({"calibration": "ranges.txt"}) == {}
    with pytest.raises(softneuro.Error, match="'zzz'"):
        in_floats({"keep": "zzz"})
