"""What goes wrong is told, and nothing else happens."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import softneuro
from softneuro import providers
from softneuro.providers import library
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds, whole_session
from tests.providers.scripts import run_script


def relu(shape: tuple[int | str, ...] = ("n", 3)) -> bytes:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Sigmoid", ["a"], ["y"])]
    return make_model(nodes, {"x": shape}, {"y": shape})


def conv(**attributes: object) -> bytes:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    weight = np.ones((2, 3, 3, 3), np.float32)
    return make_model(nodes, {"x": ["n", 3, "h", "w_"]}, {"y": None}, {"w": weight})


def test_misspelt_option_names_the_nearest() -> None:
    with pytest.raises(softneuro.Error, match="did you mean 'threads'"):
        providers.session(relu(), thread=2)
    with pytest.raises(softneuro.Error, match="max_error"):
        providers.session(relu(), max_error=-1)
    settings = onnxruntime.SessionOptions()
    providers.register()
    settings.add_provider_for_devices(library.devices(), {"thread": "2"})
    with pytest.raises(Exception, match="did you mean 'threads'"):
        onnxruntime.InferenceSession(relu(), settings, enable_fallback=0)


def test_options_by_configuration_entry() -> None:
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("ep.softneuroexecutionprovider.tune", "sometimes")
    with pytest.raises(Exception, match="profile, cached or off"):
        providers.session(relu(), settings)


def test_corrupt_models() -> None:
    model = conv()
    for broken in (b"", b"nonsense", model[: len(model) // 2]):
        with pytest.raises(Exception, match=r"(?i)protobuf|model|load"):
            providers.session(broken)
    with pytest.raises(Exception, match=r"(?i)exist|fail"):
        providers.session("/nonexistent/model.onnx")


def test_unknown_attribute_values_stay_with_the_host() -> None:
    with pytest.raises(Exception, match=r"(?i)auto_pad|pad"):
        providers.session(conv(auto_pad="SOMEHOW"), tune="off")


@pytest.mark.skipif(onnxruntime.__version__.startswith("1.25."), reason="its own CPU provider crashes on them")
def test_negative_pads() -> None:
    model = conv(pads=[-1, -1, -1, -1])
    try:
        cpu = cpu_session(model)
        expected = cpu.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})[0]
    except Exception:
        return
    result = providers.session(model, tune="off").run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})[0]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_scalars() -> None:
    model = relu(())
    ours, cpu = whole_session(model), cpu_session(model)
    check_same(ours, cpu, {"x": np.array(0.5, np.float32)})


def test_wrong_shapes_at_run_time() -> None:
    ours = whole_session(conv())
    for shape in [(1, 4, 8, 8), (1, 3, 2, 2), (3, 8, 8)]:
        with pytest.raises(Exception, match=r"(?i)dimension|shape|rank|channel|kernel|softneuro"):
            ours.run(None, {"x": np.ones(shape, np.float32)})
    assert ours.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})[0].shape == (1, 2, 6, 6)


def test_symbols_that_disagree_at_run_time() -> None:
    model = make_model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ["n", 3], "b": ["n", 3]}, {"y": ["n", 3]})
    ours = whole_session(model)
    with pytest.raises(Exception, match="softneuro"):
        ours.run(None, {"a": np.ones((2, 3), np.float32), "b": np.ones((5, 3), np.float32)})
    assert ours.run(None, {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 3), np.float32)})[0].shape == (2, 3)


def test_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    with pytest.raises(softneuro.Error, match="reinstall"):
        providers.get_library_path()


def test_old_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.24.1")
    with pytest.raises(softneuro.Error, match=r"1\.25 or later"):
        providers.session(relu())


def test_registering_twice() -> None:
    providers.register()
    providers.register()
    with pytest.raises(Exception, match="already"):
        onnxruntime.register_execution_provider_library(library.REGISTRATION, providers.get_library_path())
    assert len(library.devices()) == 1


PLACES = ["CreateEpFactories", "GetSupportedDevices", "CreateEp", "GetCapability", "Compile", "CreateState", "Compute"]
QUIET = ["ReleaseNodeComputeInfos", "ReleaseEp", "ReleaseEpFactory"]  # where there is nobody to tell
KINDS = {"": "failure injected into {}", ":memory": "softneuro: out of memory", ":unknown": "softneuro: unknown error"}


@pytest.mark.parametrize(
    ("place", "kind"),
    [*((p, "") for p in [*PLACES, *QUIET]), *((p, k) for p in ("Compile", "Compute") for k in (":memory", ":unknown"))],
)
def test_exceptions_never_leave_a_callback(place: str, kind: str) -> None:
    script = "session = whole_session(relu())\nsession.run(None, random_feeds(session, {'n': 2}))"
    done = run_script(script, SOFTNEURO_ORT_FAIL=place + kind)
    if place in PLACES:
        assert done.returncode == 1
        assert KINDS[kind].format(place) in done.stderr
    else:
        assert done.returncode == 0, done.stderr[-2000:]


def test_exception_while_compatibility_is_asked() -> None:
    script = """
from onnxruntime.capi._pybind_state import get_model_compatibility_for_ep_devices
providers.register()
print(get_model_compatibility_for_ep_devices(library.devices(), "something"))
"""
    done = run_script(script, SOFTNEURO_ORT_FAIL="ValidateCompatibility")
    assert "failure injected into ValidateCompatibility" in done.stderr
    assert "RECOMPILATION" in run_script(script).stdout


def test_failures_on_the_host() -> None:
    """Where the callbacks of all kinds fail at once, the session says so, and the process goes on."""
    script = """
for _ in range(2):
    try:
        providers.session(relu(), tune="off", min_region_size=1)
    except Exception as error:
        print(error)
print(cpu_session(relu()).run(None, {"x": np.ones((2, 3), np.float32)})[0].shape)
"""
    done = run_script(script, SOFTNEURO_ORT_FAIL=",".join([*PLACES[2:], *QUIET]))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("failure injected into CreateEp") == 2
    assert "(2, 3)" in done.stdout


def test_out_of_memory() -> None:
    """A run for which memory is short fails, and smaller ones go on."""
    script = """
import resource
weight = np.ones((64, 3, 3, 3), np.float32)
nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["d"])]
nodes.append(helper.make_node("GlobalAveragePool", ["d"], ["y"]))
model = make_model(nodes, {"x": ["n", 3, "h", "w_"]}, {"y": None}, {"w": weight})
session, small = whole_session(model), np.ones((1, 3, 16, 16), np.float32)
before = session.run(None, {"x": small})[0]
large = np.ones((1, 3, 2048, 2048), np.float32)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), -1))
for _ in range(2):
    try:
        session.run(None, {"x": large})
    except Exception as error:
        print("refused", error)
    assert np.array_equal(session.run(None, {"x": small})[0], before)
"""
    done = run_script(script)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("refused") == 2, done.stdout


def test_unregistering_while_a_session_lives() -> None:
    script = """
session = whole_session(relu())
feeds = random_feeds(session, {"n": 2})
session.run(None, feeds)
try:
    onnxruntime.unregister_execution_provider_library("softneuro")
except Exception as error:
    print("refused", error)
session.run(None, feeds)
del session
gc.collect()
"""
    done = run_script(script)
    assert done.returncode == 0, done.stderr[-2000:]


assert gc
assert random_feeds
