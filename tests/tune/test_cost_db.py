"""The cost database: keys, damage, two processes, limits, unusable directories."""

from __future__ import annotations

import fcntl
import logging
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softneuro import _C

FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
NASTY = st.text(st.characters(min_codepoint=0, max_codepoint=0x2FF), max_size=20)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Warnings of the core."""
    seen: list[str] = []

    def keep(level: int, template: str, message: str) -> None:
        if level == logging.WARNING:
            seen.append(template % message)

    monkeypatch.setattr(logging.getLogger("softneuro"), "log", keep)
    return seen


# One of every kind.
RECORDS: dict[str, dict[str, Any]] = {
    "time": {"seconds": 1e-5, "samples": 9, "spread": 3e-7},
    "forecast": {"seconds": 1e-5, "budget_s": math.inf},
    "error": {"error": math.inf},
    "sections": {"count": 16},
    "allowance": {"budget_s": 0.5},
    "verdict": {"seconds": 0.5, "host_seconds": 0.1, "trials": 2},
    "floor": {"zeros": 0.55},
}


def key(signature: str = "conv2d 1x3x224x224", descriptor: str = "conv2d/cpu:float32:nchw/direct") -> _C.CostKey:
    return _C.CostKey("intel-6-85-4", 2, signature, descriptor, "v1")


def test_records_survive_and_the_newest_wins(tmp_path: Path, warnings: list[str]) -> None:
    db = _C.CostDb(str(tmp_path / "a" / "b"))
    assert db.find(key()) is None
    db.add(key(), 0.1, 3, 0.01)
    db.add(key(), 1 / 3, 5, 0.0)
    for kind, fields in RECORDS.items():
        db.put(kind, key("other"), fields)
    again = _C.CostDb(str(tmp_path / "a" / "b"))
    for each in (db, again):
        assert each.find(key()) == (1 / 3, 5, 0.0)
        assert each.get("forecast", key()) is None
        for kind, fields in RECORDS.items():
            assert each.get(kind, key("other")) == fields
        assert len(each) == len(each.records()) == 1 + len(RECORDS)
        assert [kind for kind, _, _ in each.records()] == ["time", *RECORDS]
    assert warnings == []


def test_every_part_of_the_key_counts(tmp_path: Path) -> None:
    db = _C.CostDb(str(tmp_path))
    parts = ("d", 1, "s", "r", "v", "g")
    db.add(_C.CostKey(*parts), 1.0)
    ((_, found, _),) = db.records()
    names = ("device", "threads", "signature", "descriptor", "version", "graph")
    assert tuple(getattr(found, name) for name in names) == parts
    assert db.find(found) == (1.0, 1, 0.0)
    for other in (
        ("e", *parts[1:]),
        ("d", 2, *parts[2:]),
        ("d", 1, "t", *parts[3:]),
        ("d", 1, "s", "q", "v", "g"),
        ("d", 1, "s", "r", "w", "g"),
        ("d", 1, "s", "r", "v", "h"),
        ("d", 1, "s", "r", "v"),
    ):
        assert db.find(_C.CostKey(*other)) is None


def test_others_records_are_picked_up(tmp_path: Path) -> None:
    one, two = _C.CostDb(str(tmp_path)), _C.CostDb(str(tmp_path))
    one.add(key("a"), 1.0)
    assert two.find(key("a")) == (1.0, 1, 0.0)
    two.compact()
    one.add(key("b"), 2.0)
    assert two.find(key("b")) == (2.0, 1, 0.0)
    Path(one.path).unlink()
    two.add(key("c"), 3.0)
    assert one.find(key("c")) == (3.0, 1, 0.0)


@FUZZ
@given(parts=st.tuples(NASTY, st.integers(-(2**31), 2**31 - 1), NASTY, NASTY, NASTY), seconds=st.floats(0, 3600))
def test_any_characters_survive(tmp_path: Path, parts: tuple[str, int, str, str, str], seconds: float) -> None:
    db = _C.CostDb(str(tmp_path))
    db.add(_C.CostKey(*parts), seconds)
    fresh = _C.CostDb(str(tmp_path))
    assert fresh.find(_C.CostKey(*parts)) == (seconds, 1, 0.0)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, -math.inf, 1e9])
def test_what_is_no_cost_is_refused(tmp_path: Path, seconds: float) -> None:
    db = _C.CostDb(str(tmp_path))
    with pytest.raises(_C.Error, match=r"seconds of a record of kind time is .*, not from 0 to 3600"):
        db.add(key(), seconds)
    with pytest.raises(_C.Error, match="spread of a record of kind time"):
        db.add(key(), 1.0, 1, seconds)
    with pytest.raises(_C.Error, match="host_seconds of a record of kind verdict"):
        db.put("verdict", key(), {**RECORDS["verdict"], "host_seconds": seconds})
    assert len(db) == 0


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("time", {"seconds": 1.0, "samples": 0, "spread": 0.0}, "samples of a record of kind time is 0"),
        ("forecast", {"seconds": 1.0, "budget_s": math.nan}, "budget_s of a record of kind forecast is"),
        ("error", {"error": math.nan}, "error of a record of kind error is"),
        ("error", {"error": -1.0}, "error of a record of kind error is -1"),
        ("sections", {"count": 0}, "count of a record of kind sections is 0"),
        ("floor", {"zeros": 1.5}, "zeros of a record of kind floor is 1.5, not from 0 to 1"),
        ("allowance", {}, "needs budget_s"),
        ("allowance", {"budget_s": 1.0, "seconds": 1.0}, "no such fields"),
        ("cost", {"seconds": 1.0}, "no records of kind 'cost'"),
    ],
)
def test_fields_that_no_record_has_are_refused(
    tmp_path: Path, kind: str, fields: dict[str, float], message: str
) -> None:
    db = _C.CostDb(str(tmp_path))
    with pytest.raises(_C.Error, match=message):
        db.put(kind, key(), fields)
    assert len(db) == 0


def test_bad_lines_are_skipped_with_one_warning(tmp_path: Path, warnings: list[str]) -> None:
    db = _C.CostDb(str(tmp_path))
    db.add(key("a"), 1.0)
    db.add(key("b"), 2.0)
    file = Path(db.path)
    first, second = file.read_bytes().splitlines(keepends=True)
    lies = first.replace(b"seconds=1 ", b"seconds=9 ")
    assert lies != first
    file.write_bytes(lies + b"sn0 foreign\n\xff\x00\n" + b"x" * 1_000_000 + b"\n\n" + second + first[:30])
    fresh = _C.CostDb(str(tmp_path))
    assert fresh.find(key("a")) is None
    assert fresh.find(key("b")) == (2.0, 1, 0.0)
    assert len(warnings) == 1
    assert "damaged" in warnings[0]
    fresh.add(key("c"), 3.0)  # behind a torn line
    assert _C.CostDb(str(tmp_path)).find(key("c")) == (3.0, 1, 0.0)
    assert fresh.find(key("b")) == (2.0, 1, 0.0)


@FUZZ
@given(data=st.binary(max_size=300), cut=st.integers(0, 400), flip=st.integers(0, 400), junk=st.integers(0, 255))
def test_damage_never_invents_a_record(tmp_path: Path, data: bytes, cut: int, flip: int, junk: int) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    db = _C.CostDb(str(tmp_path))
    for i in range(3):
        db.add(key(f"layer {i}"), float(i), i + 1, 0.5)
    file = Path(db.path)
    good = bytearray(file.read_bytes())
    if flip < len(good):
        good[flip] = junk
    file.write_bytes(bytes(good[:cut]) + data + bytes(good[cut:]))
    fresh = _C.CostDb(str(tmp_path))
    assert len(fresh) <= 3
    for i in range(3):
        assert fresh.find(key(f"layer {i}")) in (None, (float(i), i + 1, 0.5))
    fresh.add(key("new"), 7.0)
    assert _C.CostDb(str(tmp_path)).find(key("new")) == (7.0, 1, 0.0)


def line(text: str) -> bytes:
    """With a checksum, as if another version, or somebody's editor, had written it."""
    return f"{text} #{_C.testing.cost_line_checksum(text)}\n".encode()


BEFORE_VALUE = "sn3 time v d 1 % s r = "


@pytest.mark.parametrize(
    "value",
    [
        "seconds=1 samples=1",
        "seconds=1 samples=1 spread=0 seconds=1",
        "seconds=1 samples=1 samples=1",
        "seconds=1 samples=1 spread=0 more=1",
        "seconds=1 samples=1 spread=nan",
        "seconds=1 samples=0 spread=0",
        "seconds=1 samples=1.5 spread=0",
        "seconds=-1 samples=1 spread=0",
        "seconds=1 samples=1 spread= 0",
        "1 1 0",
        "",
    ],
)
def test_fields_that_do_not_add_up_are_damage(tmp_path: Path, warnings: list[str], value: str) -> None:
    """And leave what was known before."""
    good = line(BEFORE_VALUE + "spread=0.5 seconds=2 samples=3")  # in any order
    (tmp_path / "costs.txt").write_bytes(good + line(BEFORE_VALUE + value))
    db = _C.CostDb(str(tmp_path))
    assert db.find(_C.CostKey("d", 1, "s", "r", "v")) == (2.0, 3, 0.5)
    assert len(db) == 1
    assert ["damaged" in warning for warning in warnings] == [True]


@pytest.mark.parametrize("start", ["sn3 time v d 1 s r", "sn3 time v d one % s r", "sn3 time v d 1 % s r x"])
def test_keys_that_do_not_add_up_are_damage(tmp_path: Path, warnings: list[str], start: str) -> None:
    (tmp_path / "costs.txt").write_bytes(line(start + " = seconds=1 samples=1 spread=0"))
    assert len(_C.CostDb(str(tmp_path))) == 0
    assert len(warnings) == 1


def test_kinds_of_a_later_version_are_left_alone(tmp_path: Path, warnings: list[str]) -> None:
    later = line("sn3 energy v d 1 % s r and more = joules=1 volts=3")
    (tmp_path / "costs.txt").write_bytes(later)
    db = _C.CostDb(str(tmp_path))
    db.add(key(), 1.0)
    db.add(key(), 2.0)
    db.compact()
    assert later in Path(db.path).read_bytes()
    assert Path(db.path).read_bytes().count(b"\n") == 2
    assert [kind for kind, _, _ in db.records()] == ["time"]
    assert warnings == []


def test_a_file_of_the_format_before_is_told_once(tmp_path: Path, warnings: list[str]) -> None:
    old = b"sn2 cost v d 1 s r = 1 1 0 #0123456789abcdef\n"
    (tmp_path / "costs.txt").write_bytes(2 * old)
    db = _C.CostDb(str(tmp_path))
    assert len(db) == 0
    assert len(warnings) == 1
    assert "earlier version" in warnings[0]
    assert "measured again" in warnings[0]
    db.add(key(), 1.0)
    assert _C.CostDb(str(tmp_path)).find(key()) == (1.0, 1, 0.0)  # and no word any more
    assert len(warnings) == 1


def test_the_file_stays_within_its_limit(tmp_path: Path) -> None:
    db = _C.CostDb(str(tmp_path), 4000)
    other = _C.CostDb(str(tmp_path), 4000)
    for i in range(200):
        db.add(key(f"layer {i}"), float(i))
        assert Path(db.path).stat().st_size <= 4000
        assert other.find(key(f"layer {i}")) == (float(i), 1, 0.0)
    fresh = _C.CostDb(str(tmp_path))
    assert fresh.find(key("layer 199")) == (199.0, 1, 0.0)
    assert fresh.find(key("layer 0")) is None
    assert 0 < len(fresh) < 200


def test_compaction_keeps_the_newest(tmp_path: Path) -> None:
    db = _C.CostDb(str(tmp_path))
    for i in range(50):
        db.add(key(), float(i))
    db.compact()
    assert Path(db.path).read_bytes().count(b"\n") == 1
    assert db.find(key()) == (49.0, 1, 0.0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["costs.lock", "costs.txt"]


WRITER = """
import sys
from softneuro import _C
db = _C.CostDb(sys.argv[1], int(sys.argv[3]))
for i in range(400):
    db.add(_C.CostKey("d", 1, f"{sys.argv[2]} {i} " + "x" * (i % 97), "r", "v"), i / 1000, i + 1, 0.0)
"""


@pytest.mark.parametrize("max_bytes", [1 << 20, 120_000])
def test_processes_lose_and_tear_nothing(tmp_path: Path, warnings: list[str], max_bytes: int) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name, str(max_bytes)], env=env) for name in "ab"]
    own = _C.CostDb(str(tmp_path), max_bytes)
    threads = [
        threading.Thread(target=lambda n=n: [own.add(key(f"thread {n} {i}"), 1.0) for i in range(100)])
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait() for writer in writers] == [0, 0]
    fresh = _C.CostDb(str(tmp_path))
    if max_bytes == 1 << 20:
        assert len(fresh) == 2 * 400 + 2 * 100
        for name in "ab":
            for i in range(400):
                found = fresh.find(_C.CostKey("d", 1, f"{name} {i} " + "x" * (i % 97), "r", "v"))
                assert found == (i / 1000, i + 1, 0.0)
    else:
        assert Path(fresh.path).stat().st_size <= max_bytes
    assert warnings == []


def test_an_unusable_directory_costs_one_warning(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below", Path("/dev/null/x"), Path("/proc/nothing")):
        db = _C.CostDb(str(directory))
        db.add(key(), 1.0)
        db.compact()
        assert db.find(key()) == (1.0, 1, 0.0)
        assert db.path == ""
        assert len(warnings) == 1
        assert "memory only" in warnings.pop()


def test_a_lock_that_stays_is_not_waited_for(tmp_path: Path, warnings: list[str]) -> None:
    """A stopped process must not stop the others."""
    db = _C.CostDb(str(tmp_path))
    with (tmp_path / "costs.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        db.add(key(), 1.0)
    assert db.find(key()) == (1.0, 1, 0.0)
    assert len(warnings) == 1
    assert "cannot lock" in warnings[0]


def test_a_fifo_or_directory_in_its_place_does_no_harm(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / "costs.txt").mkdir()
    db = _C.CostDb(str(tmp_path))
    db.add(key(), 1.0)
    assert db.find(key()) == (1.0, 1, 0.0)
    (tmp_path / "costs.txt").rmdir()
    os.mkfifo(tmp_path / "costs.txt")
    db = _C.CostDb(str(tmp_path))
    db.add(key(), 1.0)
    assert db.find(key()) == (1.0, 1, 0.0)
    assert len(warnings) == 2


def test_a_very_long_key_is_kept_in_memory(tmp_path: Path) -> None:
    db = _C.CostDb(str(tmp_path))
    db.add(key("x" * 200_000), 1.0)
    db.add(key(), 2.0)
    assert db.find(key("x" * 200_000)) == (1.0, 1, 0.0)
    assert len(_C.CostDb(str(tmp_path))) == 1


def test_a_forked_child_writes_too(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom softneuro import _C\ndb = _C.CostDb(sys.argv[1])\n"
        "add = lambda name: [db.add(_C.CostKey('d', 1, f'{name} {i}', 'r', 'v'), 1.0) for i in range(200)]\n"
        "child = os.fork()\nadd('child' if child == 0 else 'parent')\n"
        "if child == 0: os._exit(0)\nassert os.waitpid(child, 0)[1] == 0\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=env, check=True)
    assert len(_C.CostDb(str(tmp_path))) == 400


def test_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTNEURO_CACHE_DIR", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/me")
    assert _C.CostDb.default_directory() == "/own"
    monkeypatch.delenv("SOFTNEURO_CACHE_DIR")
    assert _C.CostDb.default_directory() == "/xdg/softneuro"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _C.CostDb.default_directory() == "/home/me/.cache/softneuro"
    monkeypatch.delenv("HOME")
    assert _C.CostDb.default_directory() == ""
