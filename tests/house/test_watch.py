"""What `make` shows while it sets up and builds."""

import subprocess
import sys
from pathlib import Path

WATCH = Path(__file__).parents[2] / ".ci" / "watch.py"


def watch(script: str) -> tuple[int, str]:
    command = [sys.executable, str(WATCH), "building", "two minutes", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_it_says_what_is_being_done_and_how_long_it_takes() -> None:
    code, shown = watch("print('[1/2] one'); print('a note')")
    assert code == 0
    before, after = shown.splitlines()
    assert "building (two minutes)" in before
    assert after.startswith("building: ")
    assert after.endswith(" s")


def test_it_fails_as_the_command_does_and_shows_why() -> None:
    code, shown = watch("print('[1/2] one'); print('what went wrong'); raise SystemExit(3)")
    assert code == 3
    assert "what went wrong" in shown
    assert "[1/2]" not in shown
    assert "building: " not in shown
