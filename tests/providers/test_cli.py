"""The command line: results, JSON, exit codes."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from softneuro import providers
from tests.providers.conftest import check_same, cpu_session, make_model, random_feeds
from tests.providers.test_sessions import network

if importlib.util.find_spec("click") is None:
    pytest.skip("click is not installed", allow_module_level=True)
from click import testing

from softneuro.providers import cli


def call(*arguments: object) -> Any:
    return testing.CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def result_of(*arguments: object) -> dict[str, Any]:
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(network())
    return path


SHAPE = ("--shape", "x=1,3,16,16", "-O", "tune=off")


def test_info() -> None:
    data = result_of("info")
    assert data["isas"][-1] == "scalar"
    assert {row["name"] for row in data["options"]} >= {"threads", "tune"}
    text = call("info").output
    assert data["cpu"] in text
    assert "conv2d" in text


def test_info_of_a_model(model: Path) -> None:
    data = result_of("info", model)
    (graph,) = data["graphs"]
    assert graph["claimed"] == graph["nodes"] > 0
    text = call("info", model).output
    assert f"{graph['claimed']} of {graph['nodes']} nodes" in text
    assert " ms" not in text
    assert "Error" in call("info", model.with_name("none.onnx")).output


def test_tune(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned.onnx"
    data = result_of("tune", model, "-o", out, *SHAPE)
    assert data["graphs"][0]["claimed"] == data["graphs"][0]["nodes"]
    assert len(data["regions"]) == 1
    ours, cpu = providers.session(out, tune="off"), cpu_session(model.read_bytes())
    check_same(ours, cpu, random_feeds(cpu, {"n": 1, "s": 16}))
    again = call("tune", model, "-o", out, *SHAPE)
    assert again.exit_code == 1
    assert "exists" in again.output
    assert call("tune", model, "-o", out, "--force", "--embed", "--no-packed", *SHAPE).exit_code == 0


def test_convert(model: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    data = result_of("convert", model, "-o", tmp_path / "out.onnx", "--plan", plan, *SHAPE)
    assert len(data["nodes"]) == 3
    assert all("/" in descriptor for descriptor in data["nodes"].values())
    assert plan.exists()


def test_bench_and_explain(model: Path) -> None:
    data = result_of("bench", model, "--seconds", 0.05, *SHAPE)
    assert data["seconds"] > 0
    assert data["cpu_seconds"] > 0
    assert data["error"] < 1e-5
    assert "cpu_seconds" not in result_of("bench", model, "--seconds", 0.05, "--against", "none", *SHAPE)
    assert "nodes" in call("explain", model, *SHAPE).output
    assert result_of("explain", model, *SHAPE)["regions"]


@pytest.mark.parametrize("kind", ["STRING", "BFLOAT16"])
def test_bench_without_examples(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.onnx"
    node = helper.make_node("Identity", ["x"], ["y"])
    path.write_bytes(make_model([node], {"x": (1,)}, {"y": (1,)}, types={"x": kind, "y": kind}))
    done = call("bench", path, "-O", "tune=off")
    assert done.exit_code == 1
    assert "no examples" in done.output, done.output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("bench", "MODEL"), 1, "open shape"),
        (("explain", "MODEL", "-O", "thread=2"), 1, "did you mean"),
        (("explain", "MODEL", "-O", "thread"), 2, "NAME=VALUE"),
        (("explain", "MODEL", "--shape", "x=1,2"), 2, "no input"),
        (("explain", "MODEL", "--shape", "x=1,4,8,8"), 2, "has 3"),
        (("explain", "MODEL", "--shape", "x=a"), 2, "sizes"),
        (("explain", "/nonexistent.onnx"), 2, "exist"),
        (("dance",), 2, "No such command"),
        (("explain", "BROKEN"), 1, "(?i)protobuf|fail"),
    ],
)
def test_what_is_refused(model: Path, arguments: tuple[str, ...], status: int, message: str) -> None:
    broken = model.with_name("broken.onnx")
    broken.write_bytes(b"nonsense")
    done = call(*({"MODEL": str(model), "BROKEN": str(broken)}.get(argument, argument) for argument in arguments))
    assert done.exit_code == status, done.output
    assert re.search(message, done.output), done.output


def test_entry_and_a_missing_click(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "softneuro.providers.command", "--version"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "softneuro" in done.stdout
    code = "import sys; sys.modules['click'] = None\nfrom softneuro.providers.command import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "softneuro[cli]" in done.stderr


def test_json_has_no_numbers_that_json_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    from softneuro.providers.cli_common import show

    values = [float("inf"), -float("inf"), float("nan"), 1.5, True, None, "Infinity"]
    show(True, {"values": values, "within": {"a": (values[0], 2)}}, [])

    def refuse(text: str) -> Any:
        raise ValueError(text)

    data = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert data == {"values": [None, None, None, 1.5, True, None, "Infinity"], "within": {"a": [None, 2]}}


@pytest.mark.parametrize("command", ["explain", "bench", "sparsity"])
def test_json_is_strict(command: str, model: Path) -> None:
    options = (*SHAPE, "--seconds", 0.05) if command == "bench" else SHAPE
    done = call(command, model, *options, "--json")
    assert done.exit_code == 0, done.output
    assert not re.search(r"\b(NaN|Infinity)\b", done.stdout)


def test_data_that_is_torn_costs_one_line(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "x.npz"
    data.write_bytes(b"PK\x03\x04 and no more")
    done = call("calibrate", model, "--data", data, "-o", tmp_path / "r.txt", *SHAPE)
    assert done.exit_code == 1
    assert re.fullmatch(rf"Error: {re.escape(str(data))} cannot be read: [^\n]+\n", done.output)
