"""Files stay small enough to be read in one go."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMITS = [  # first match counts
    (r"benchmarks/RESULTS\.md$", 185),
    (r"docs/architecture\.md$", 150),
    (r"setup\.py$", 150),
    (r"csrc/(?!simd/).*_(scalar|avx2|avxvnni|avx512|avx512vnni|amx|neon)\.cc$", 200),
    (r"csrc/.*generic\.h$", 350),
    (r"csrc/simd/.*\.h$", 400),
    (r"csrc/.*\.(cc|h|inc)$", 350),
    (r"(ext|torch_backend|providers)/.*\.(cc|h)$", 350),
    (r"tests/.*\.py$", 400),
    (r".*\.py$", 300),
]
EXCEPTIONS: dict[str, tuple[int, str]] = {}  # path -> (limit, why it may be longer)


def tracked_files() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listing.stdout.splitlines() if (ROOT / name).exists()]


def test_files_stay_small() -> None:
    too_long = []
    for name in tracked_files():
        limit = next((limit for pattern, limit in LIMITS if re.fullmatch(pattern, name)), None)
        limit, _ = EXCEPTIONS.get(name, (limit, ""))
        if limit is not None and (lines := len((ROOT / name).read_text().splitlines())) > limit:
            too_long.append(f"{name}: {lines} lines, limit {limit}")
    assert not too_long, "\n".join(too_long)


def test_exceptions_are_needed() -> None:
    assert set(EXCEPTIONS) <= set(tracked_files())
