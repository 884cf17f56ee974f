"""softneuro: runs trained networks faster where they already run.

Importing the package needs neither torch nor onnxruntime. The front doors are `softneuro.torch_backend`
(`torch.compile(model, backend="softneuro")`) and `softneuro.providers` (ONNX Runtime).
"""

from softneuro._C import (
    Error,
    Graph,
    Net,
    Plan,
    __version__,
    available_extensions,
    available_isas,
    cpu_brand,
    cpu_id,
    option_table,
    registry,
)
from softneuro.messages import to_logging
from softneuro.tuner import tune

__all__ = [
    "Error",
    "Graph",
    "Net",
    "Plan",
    "__version__",
    "available_extensions",
    "available_isas",
    "cpu_brand",
    "cpu_id",
    "option_table",
    "registry",
    "tune",
]

to_logging()
