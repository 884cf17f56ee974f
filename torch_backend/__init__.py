"""The PyTorch front door: `torch.compile(model, backend="softneuro")`."""

from typing import Any

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("softneuro.torch_backend needs PyTorch: pip install 'torch>=2.11'") from error


def softneuro(gm: Any, example_inputs: Any, **options: Any) -> Any:
    """The backend function that `torch.compile` calls."""
    raise NotImplementedError("the softneuro backend of this version cannot compile graphs yet")
