"""Models in bytes throughout, as ONNX Runtime's tools quantize them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process


class Reader(quantization.CalibrationDataReader):
    """The same data, as ONNX Runtime's tools take it."""

    def __init__(self, name: str, batches: list[torch.Tensor]) -> None:
        self._batches: Iterator[dict[str, np.ndarray]] = iter([{name: batch.numpy()} for batch in batches])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._batches, None)


def quantized_file(model: torch.nn.Module, batches: list[torch.Tensor], folder: Path) -> str:
    """The model as ONNX Runtime's tools quantize it."""
    exported, plain, quantized = (str(folder / f"{name}.onnx") for name in ("exported", "plain", "quantized"))
    torch.onnx.export(model, (batches[0],), exported, dynamo=True, external_data=False, verbose=False)
    quant_pre_process(exported, plain, skip_symbolic_shape=True)
    name = onnxruntime.InferenceSession(plain, providers=["CPUExecutionProvider"]).get_inputs()[0].name
    quantization.quantize_static(plain, quantized, Reader(name, batches), per_channel=True)
    return quantized
