"""Every routine of the registry against its layer's naive float64 reference, on random problems."""

from __future__ import annotations

import importlib
import itertools
import os
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import softneuro
from softneuro import _C
from softneuro.error_measure import relative_error
from tests.bounds import bound

# Conversions have tests of their own, and what a host computes is its own affair.
TYPES = sorted({entry["layer"] for entry in softneuro.registry()} - {"adapt", "host", "look_up", "quantize"})
EXAMPLES = int(os.environ.get("SOFTNEURO_TEST_EXAMPLES", "60"))  # per layer type


def build(layer: str, problem: dict[str, Any]) -> softneuro.Graph:
    graph = softneuro.Graph()
    dtypes = problem.get("dtypes", ["float32"] * len(problem["inputs"]))
    blobs = [graph.input(f"x{i}", x.shape, dtypes[i]) for i, x in enumerate(problem["inputs"])]
    made = graph.add(layer, blobs, weights=problem["weights"], post=problem.get("post", {}), **problem["attrs"])
    for blob in graph.outputs_of(made):
        graph.output(blob)
    return graph


def floats(weights: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """Those of the weights that are float32."""
    return [w for w in weights.values() if isinstance(w, np.ndarray) and w.dtype == np.float32]


@pytest.mark.parametrize("layer", TYPES)
def test_every_routine_matches_the_reference(layer: str) -> None:
    """All accepting routines and tunings, each by turns on one and three threads."""
    module = importlib.import_module(f"tests.layers.strategies.{layer}")
    special = module.special() if hasattr(module, "special") else []
    descriptors = {e["descriptor"]: e for e in softneuro.registry() if e["layer"] == layer}
    seen: set[str] = set()
    turn = itertools.count()

    def check(problem: dict[str, Any]) -> None:
        post, dtypes = problem.get("post", {}), problem.get("dtypes", [])
        inputs = [np.asarray(x, dtype=np.float32, order="C") for x in problem["inputs"]]
        clean = all(np.isfinite(x).all() for x in [*inputs, *floats(problem["weights"])])
        with np.errstate(all="ignore"):
            expected = build(layer, problem).reference(inputs)
        arguments = (layer, problem["attrs"], problem["weights"])
        shapes, number = [x.shape for x in inputs], next(turn)
        for parity, threads in enumerate((1, 3)):
            accepted = _C.testing.accepting(*arguments, shapes, post, threads, dtypes)
            assert accepted, f"no routine accepts {problem}"
            # Tunings of a routine are next to each other, so that either number of threads meets each routine.
            for descriptor in accepted[(number + parity) % 2 :: 2]:
                made = _C.testing.run_routine(*arguments, inputs, descriptor, post, threads, dtypes)
                seen.add(descriptor.split("{")[0])
                for actual, wanted in zip(made if isinstance(made, tuple) else (made,), expected, strict=True):
                    assert actual.shape == wanted.shape
                    # A spread infinity may leave a number behind: relu makes zero of it.
                    if clean or not descriptors[descriptor.split("{")[0]]["spreads_nonfinite"]:
                        compare(descriptor, actual, wanted)

    def compare(descriptor: str, actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
        with np.errstate(all="ignore"):
            reference = expected.astype(np.float32)
        finite = np.isfinite(reference)
        if not descriptors[descriptor.split("{", maxsplit=1)[0]]["spreads_nonfinite"]:
            np.testing.assert_array_equal(actual[~finite], reference[~finite], err_msg=descriptor)
        # A step of the least numbers that there are is no small part of them; halves of floats have no such numbers.
        exact = descriptors[descriptor.split("{", maxsplit=1)[0]]["error"] == "exact"
        if np.abs(actual[finite] - expected[finite]).max(initial=0) < (1e-42 if exact else 1e-38):
            return
        error = relative_error(actual[finite], expected[finite])
        most = bound(descriptor)
        assert error <= most, f"{descriptor}: relative L2 error {error:.2e} is above {most:.0e}"

    for strategy, examples in [(module.problems(), EXAMPLES), *((s, EXAMPLES // 5) for s in special)]:
        limits = settings(
            max_examples=max(examples, 1), deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        seed(zlib.crc32(layer.encode()))(limits(given(problem=strategy)(check)))()
    # Those of quantized blobs have tests of their own.
    wanted = {d for d, e in descriptors.items() if e["available"] and not e["fallback"] and "qint8" not in d}
    missed = wanted - seen
    # A run of fewer examples (under sanitizers, say) need not reach every routine.
    assert not missed or EXAMPLES < 60, f"no random problem reached {sorted(missed)}"
