"""What inputs had that calibration has not observed, where plans have bytes of their own."""

from __future__ import annotations

from typing import NamedTuple

import softneuro


class OutsideInput(NamedTuple):
    """An input that had such values."""

    name: str
    least: float  # that was observed
    most: float
    value: float  # the farthest that was met
    calls: int


class Outside(NamedTuple):
    """A region's calls, since its options are as they are."""

    looked: int  # calls that were looked at
    calls: int  # with such values
    inputs: list[OutsideInput]


def outside(region: softneuro._C.Region) -> Outside:
    """What the region's calls have met."""
    looked, calls, inputs = region.outside
    return Outside(looked, calls, [OutsideInput(*one) for one in inputs])
