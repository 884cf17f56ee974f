"""What plans are chosen by stays what it was."""

from __future__ import annotations

import hashlib
import json

import softneuro
from softneuro import _C
from tests.tune.problems import random_toy
from tests.tune.test_memory import random_bytes, size


def test_plans_of_random_problems_are_those_of_before() -> None:
    """Up to three each, within limits of what the free ones take and of parts of it."""
    found = []
    for number in range(200):
        toy = random_toy(number, max_layers=8)
        try:
            free = _C.dprs_solve(toy.build())
        except softneuro.Error:
            continue
        bytes_ = random_bytes(toy, number)
        for share in (0.4, 0.7, 1.0):
            limit = share * size(bytes_, tuple(free.choices))
            plans, limited, fits = _C.dprs_solve_within(toy.build(), *bytes_, limit, 3)
            found.append([[plan.choices for plan in plans], limited, fits])
    assert len(found) == 588
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == "7d69e334612ec9f6"
