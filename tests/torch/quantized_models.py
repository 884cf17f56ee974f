"""Quantized models: what torchao's export flow makes, and ones written by hand."""

import copy

import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

qd = torch.ops.quantized_decomposed
LAST = (0.03, 128)  # grid of ByHand's results


def pt2e(model, *inputs, dynamic_shapes=None, **config):
    """By torchao's flow, calibrated with these inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(**config))
    exported = torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic_shapes)
    prepared = prepare_pt2e(exported.module(), quantizer)
    with torch.no_grad():
        prepared(*inputs)
    return convert_pt2e(prepared)


def with_grids(model):
    """The model with every quantized tensor as a further result, and the scales of these."""
    model = copy.deepcopy(model)
    (output,) = model.graph.find_nodes(op="output")
    first = {}
    for node in model.graph.find_nodes(op="call_function", target=qd.dequantize_per_tensor.default):
        first.setdefault(node.args[0], node)
    output.args = ((*output.args[0], *first.values()),)
    model.graph.set_codegen(torch.fx.graph.CodeGen())
    model.recompile()
    return model, [node.args[1] for node in first.values()]


def on_grid(x, scale, zero_point, least=0, most=255, dtype=torch.uint8):
    """Q, then DQ."""
    grid = (scale, zero_point, least, most, dtype)
    tensors = sum(isinstance(value, torch.Tensor) for value in grid)
    overload = {0: "default", 2: "tensor", 4: "tensor2"}[tensors]
    return getattr(qd.dequantize_per_tensor, overload)(getattr(qd.quantize_per_tensor, overload)(x, *grid), *grid)


class ByHand(nn.Module):
    """A convolution and a linear layer of quantized weights around `odd`, on quantized activations."""

    def __init__(self, odd=lambda module, x: x, axis=0, zero_point=0, dtype=torch.int8, grid=(0.05, 128)):
        super().__init__()
        info = torch.iinfo(dtype)
        self.odd, self.axis, self.info, self.dtype, self.grid = odd, axis, (info.min, info.max), dtype, grid
        for name, shape in {"conv": (6, 3, 3, 3), "linear": (5, 6)}.items():
            self.register_buffer(name, torch.randint(info.min, info.max + 1, shape, dtype=dtype))
            self.register_buffer(f"{name}_scales", torch.rand(shape[axis]) * 0.01 + 0.001)
            self.register_buffer(f"{name}_zeros", torch.full((shape[axis],), zero_point))
        self.bias = nn.Parameter(torch.randn(5))

    def weight(self, name):
        parts = (getattr(self, f"{name}{suffix}") for suffix in ("", "_scales", "_zeros"))
        return qd.dequantize_per_channel(*parts, self.axis, *self.info, self.dtype)

    def forward(self, x):
        x = torch.relu(nn.functional.conv2d(on_grid(x, *self.grid), self.weight("conv"), padding=1))
        x = self.odd(self, on_grid(x, 0.02, 3)).mean((2, 3))
        return on_grid(nn.functional.linear(on_grid(x, 0.01, 5), self.weight("linear"), self.bias), *LAST)
