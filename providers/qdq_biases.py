"""Biases that make up for what rounded weights add to outputs on average: which, by a file of ranges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class Corrections:
    """What a model's sections of ranges say of biases (docs/budgets.md)."""

    def __init__(self, sections: Iterable[Any]) -> None:
        self._nodes: set[str] = set()
        self._means: dict[str, np.ndarray] = {}  # by tensor
        for section in sections:
            names = {row.blob: row.name for row in section.blobs}
            self._means |= {names[row.blob]: np.array(row.values) for row in section.means if row.blob in names}
            self._nodes |= {row.name for row in section.layers if row.corrected and row.form == "bytes"}

    def shift(self, name: str, source: str, added: np.ndarray, axis: int) -> np.ndarray | None:
        """What a node's outputs have too much; None: its bias stays.

        Args:
            name: of the node.
            source: the tensor that it reads.
            added: what rounding has added to its weights.
            axis: that of outputs in them; inputs are along the first of the others.
        """
        means = self._means.get(source)
        if name not in self._nodes or means is None:
            return None
        rows = np.moveaxis(added.astype(np.float64), axis, 0)
        rows = rows.reshape(*rows.shape[:2], -1).sum(2)
        groups = len(means) // max(rows.shape[1], 1)
        if groups == 0 or groups * rows.shape[1] != len(means) or len(rows) % groups:
            return None
        of_groups = np.repeat(means.reshape(groups, -1), len(rows) // groups, axis=0)
        return np.asarray((rows * of_groups).sum(1))
