"""Longest files first, so that no worker is left with a long one at the end; `make durations` renews what is known."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def longest_tests(path: Path) -> dict[str, float]:
    """Test file -> seconds of its longest test; empty if there is no such record or it cannot be read."""
    try:
        return {str(name): float(of["longest"]) for name, of in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts by file: a file's tests share fixtures. What is not known comes first, as it may be long."""
    known = longest_tests(ROOT / "tests" / "durations.json")
    shortest_first = bool(os.environ.get("SOFTNEURO_SHORTEST_FIRST"))
    if known:
        items.sort(key=lambda item: known.get(item.nodeid.split("::")[0], float("inf")), reverse=not shortest_first)
