"""The PyTorch front door: `torch.compile(model, backend="softneuro")`."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("softneuro.torch_backend needs PyTorch: pip install 'torch>=2.11'") from error

from softneuro.torch_backend import ops
from softneuro.torch_backend.backend import softneuro
from softneuro.torch_backend.budgets.calibrate import calibrate
from softneuro.torch_backend.budgets.use_plan import use_plan
from softneuro.torch_backend.compile.tracing.masks import let_dynamo_trace
from softneuro.torch_backend.explain import calls_to_see_changes, explain, refresh, tune
from softneuro.torch_backend.exported import load
from softneuro.torch_backend.sparsity import sparsity

let_dynamo_trace()
if ops.available():
    ops.load()

__all__ = [
    "calibrate",
    "calls_to_see_changes",
    "explain",
    "load",
    "refresh",
    "softneuro",
    "sparsity",
    "tune",
    "use_plan",
]
