"""The text form of plans."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softneuro import _C

NASTY = st.text(st.characters(min_codepoint=0, max_codepoint=0x2FF), max_size=12)
SECONDS = st.floats(0, allow_infinity=False)
INDEX = st.integers(0, 10_000_000)
PLANS = st.builds(
    _C.PlanSection,
    st.builds(_C.PlanKey, NASTY, NASTY, NASTY, st.integers(0, 4096)),
    st.lists(st.builds(_C.PlanStep, INDEX, NASTY, NASTY, SECONDS), max_size=5, unique_by=lambda step: step.layer),
    st.lists(st.builds(_C.PlanAdapt, INDEX, NASTY, NASTY, SECONDS), max_size=3),
    SECONDS,
    SECONDS,
)


def sample(graph: str = "9f3a", descriptor: str = "conv2d/cpu:float32:nchw16c/direct_avx512{tile=6}") -> _C.PlanSection:
    section = _C.PlanSection(
        _C.PlanKey(graph, "1x3x224x224", "intel-6-85-4", 2),
        [
            _C.PlanStep(0, "conv2d", descriptor, 1.5e-3),
            _C.PlanStep(1, "relu", "relu/cpu:float32:any/vector_avx2", 1e-5),
        ],
        [_C.PlanAdapt(2, "cpu:float32:nchw16c", "cpu:float32:nchw", 2e-5)],
        1.53e-3,
        1.53e-3,
    )
    section.errors = {"5ba1": 2.5e-5}
    return section


def of(*plans: _C.PlanSection) -> _C.PlanFile:
    file = _C.PlanFile()
    for plan in plans:
        file.set(plan)
    return file


def test_the_text_reads_well() -> None:
    assert of(sample()).format() == (
        "softneuro-plan 5\n"
        "plan 9f3a 1x3x224x224 intel-6-85-4 2\n"
        "seconds 0.00153 0.00153\n"
        "error 5ba1 2.5e-05\n"
        "layer 0 conv2d conv2d/cpu:float32:nchw16c/direct_avx512{tile=6} 0.0015\n"
        "layer 1 relu relu/cpu:float32:any/vector_avx2 1e-05\n"
        "adapt 2 cpu:float32:nchw16c cpu:float32:nchw 2e-05\n"
        "end\n"
    )


@settings(deadline=None, database=None)
@given(st.lists(PLANS, max_size=4))
def test_round_trip_in_any_order(plans: list[_C.PlanSection]) -> None:
    file = of(*plans)
    text = file.format()
    again = _C.PlanFile.parse(text)
    assert again.plans == file.plans
    assert again.format() == text
    for plan in file.plans:
        assert again.find(plan.key) == plan
    latest = {(p.key.graph, p.key.shapes, p.key.device, p.key.threads): p for p in plans}
    assert of(*reversed(latest.values())).format() == text


@settings(max_examples=300, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(_C.Error, match="line "):
        _C.PlanFile.parse(data)


@settings(max_examples=500, deadline=None, database=None)
@given(st.data())
def test_mutations_parse_or_name_the_line(data: st.DataObject) -> None:
    text = bytearray(of(sample("a"), sample("b")).format().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 40)))
        text[at:end] = data.draw(st.binary(max_size=6) | st.sampled_from([b"\n", b" ", b"end\n", b"-1", b"1e999"]))
    try:
        file = _C.PlanFile.parse(bytes(text))
    except _C.Error as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "line " in refusal
    else:
        assert _C.PlanFile.parse(file.format()).plans == file.plans


def test_every_truncation_is_noticed() -> None:
    text = of(sample()).format()
    header = len("softneuro-plan 5\n")
    for cut in set(range(len(text))) - {header}:
        with pytest.raises(_C.Error, match="line "):
            _C.PlanFile.parse(text[:cut])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("softneuro-plan 5", "softneuro-plan 1", "line 1: made by another version"),
        ("softneuro-plan 5", "hello", "line 1: this is no plan"),
        ("plan 9f3a", "plan 9f3a extra", "line 2: 'plan' has 5 values, not 4"),
        ("seconds 0.00153", "seconds nan", "line 3: a time is not"),
        ("seconds 0.00153", "seconds -1", "line 3: a time is not"),
        ("error 5ba1 2.5e-05", "error 5ba1 nan", "line 4: an error is not"),
        ("error 5ba1 2.5e-05", "error 5ba1", "line 4: 'error' has 1 values, not 2"),
        ("layer 0", "layer -1", "line 5: an index"),
        ("layer 0", "layer 99999999999999999999", "line 5: an index"),
        ("layer 1", "layer 0", "line 6: layers are out of order"),
        ("relu relu", "relu rel%zz", "line 6: a text is not escaped"),
        ("adapt", "adopt", "line 7: expected 'end'"),
        ("end\n", "end\nplan 9f3a 1x3x224x224 intel-6-85-4 2\nseconds 0 0\nend\n", "two are for the same"),
        ("relu relu", "relu " + "x" * 70_000, "line 6: the line is longer"),
        ("relu relu", "relu" + " x" * 2000, "line 6: too many fields"),
    ],
)
def test_errors_say_what_and_where(old: str, new: str, message: str) -> None:
    text = of(sample()).format()
    assert old in text
    with pytest.raises(_C.Error, match=message):
        _C.PlanFile.parse(text.replace(old, new, 1))


def test_what_cannot_be_written_is_refused() -> None:
    for value in (math.nan, math.inf, -1.0):
        plan = sample()
        plan.seconds = value
        with pytest.raises(_C.Error, match="not a number of seconds"):
            of(plan)
    plan = sample()
    plan.steps = [plan.steps[0], plan.steps[0]]
    with pytest.raises(_C.Error, match="layer 0 appears twice"):
        of(plan)


def test_saving_merges_by_section(tmp_path: Path) -> None:
    path = str(tmp_path / "model.plan")
    of(sample("a"), sample("b", "old")).save(path)
    of(sample("b", "new"), sample("c")).save(path)
    loaded = _C.PlanFile.load(path)
    assert loaded.plans == of(sample("a"), sample("b", "new"), sample("c")).plans
    assert loaded.find(_C.PlanKey("z", "", "", 1)) is None


def test_saving_never_overwrites_what_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("print('precious')\n")
    with pytest.raises(_C.Error, match=r"model.py, line 1: this is no plan"):
        of(sample()).save(str(path))
    assert path.read_text() == "print('precious')\n"
    with pytest.raises(_C.Error, match="cannot save the plan"):
        of(sample()).save(str(tmp_path / "missing" / "a.plan"))
    with pytest.raises(_C.Error, match="cannot read the plan: No such file"):
        _C.PlanFile.load(str(tmp_path / "none.plan"))
    with pytest.raises(_C.Error, match="is not a file"):
        _C.PlanFile.load(str(tmp_path))


def test_processes_saving_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom softneuro import _C\nfor i in range(30):\n    file = _C.PlanFile()\n"
        "    file.set(_C.PlanSection(_C.PlanKey(f'{sys.argv[2]}{i}', 's', 'd', 1), [], [], 0, 0))\n"
        "    file.save(sys.argv[1])\n"
    )
    path = str(tmp_path / "model.plan")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    writers = [subprocess.Popen([sys.executable, "-c", program, path, name], env=env) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(_C.PlanFile.load(path).plans) == 60
