"""Every converter against eager, and what each declines."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softneuro.torch_backend.compile.converters import CONVERTERS
from tests.torch.straight import Every, Straight

aten = torch.ops.aten


def image(*shape):
    return torch.randn(*(shape or (2, 6, 9, 8)))


W = torch.randn(6, 1, 1)
ELEMENTWISE = {
    "add": lambda x: x + x.relu(),
    "add_number": lambda x: x + 2,
    "sub_number": lambda x: x - 1.5,
    "rsub": lambda x: 3 - x,
    "mul": lambda x: x * x.sigmoid(),
    "mul_broadcast": lambda x: x * x.mean((2, 3), keepdim=True),
    "div": lambda x: x / (x.square() + 1),
    "div_number": lambda x: x / 3,
    "reciprocal": lambda x: (x.square() + 1).reciprocal(),
    "minimum": lambda x: torch.minimum(x, -x),
    "maximum": lambda x: torch.maximum(x, 1 - x),
    "pow": lambda x: x**3,
    "pow_base": lambda x: 2**x,
    "pow_tensor": lambda x: x.sigmoid() ** x,
    "neg": torch.neg,
    "square": torch.square,
    "abs": torch.abs,
    "round": lambda x: (4 * x).round() / 2,
    "sqrt": lambda x: x.abs().sqrt(),
    "rsqrt": lambda x: (x.abs() + 1).rsqrt(),
    "sin": lambda x: (100 * x).sin(),
    "cos": torch.cos,
    "cos_of_large": lambda x: (1e5 * x).cos(),
    "addcmul": lambda x: torch.addcmul(x, x, x.relu()),
    "addcmul_scaled": lambda x: torch.addcmul(x, x[:1], x.relu(), value=0.5),
}
ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.7),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp_min": lambda x: x.clamp(min=-0.5),
    "clamp_max": lambda x: x.clamp(max=0.5),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 0.7),
    "sigmoid": torch.sigmoid,
    "hardsigmoid": F.hardsigmoid,
    "tanh": torch.tanh,
    "silu": F.silu,
    "hardswish": F.hardswish,
    "mish": F.mish,
    "softplus": F.softplus,
    "softplus_steep": lambda x: F.softplus(x, 3, 40),
    "exp": torch.exp,
    "log": lambda x: (x * x + 0.1).log(),
    "erf": torch.erf,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(1),
    "softmax_last": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
}
POOLS = {
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool_ceil_dilated": lambda x: F.max_pool2d(x, (2, 3), (2, 1), (1, 0), (2, 1), ceil_mode=True),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg_pool_ceil": lambda x: F.avg_pool2d(x, 2, ceil_mode=True),
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive_avg_one": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
    "mean_all": lambda x: (x * 1).mean().view(1),
    "mean_axes": lambda x: x.mean((2, 3)),
    "mean_channel": lambda x: x.mean(1, keepdim=True),
    "sum": lambda x: x.sum((0, 2)),
    "amax": lambda x: x.amax((2, 3)),
    "amax_channel": lambda x: x.amax(1),
    "amin": lambda x: x.amin((2, 3)),
    "amin_channel": lambda x: x.amin(1),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_last": lambda x: (x * 2).cumsum(-1),
    "argmax": lambda x: x.argmax(1) + x.argmin(3, keepdim=True).float().sum(1),
    "argmax_all": lambda x: x + x.relu().argmax() + x.argmin(keepdim=True),
    "norm": lambda x: x / x.norm(2, 1, keepdim=True).clamp_min(0.1).expand_as(x),
    "norm_of_images": lambda x: x.norm(2, (2, 3)),
    "norm_of_batches": lambda x: torch.linalg.vector_norm(x, dim=(0, 2)),
    "norm_of_all": lambda x: (x * 1).norm().view(1),
    "norm_of_magnitudes": lambda x: torch.linalg.vector_norm(x, 1, (1, 3)),
    "norm_of_greatest": lambda x: torch.linalg.vector_norm(x, float("inf"), 1),
    "norm_of_least": lambda x: torch.linalg.vector_norm(x, float("-inf"), 3, keepdim=True),
}
MOVES = {
    "flatten": lambda x: x.flatten(1),
    "reshape": lambda x: x.reshape(4, 3, 72),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "transpose": lambda x: x.transpose(1, -1),
    "contiguous": lambda x: x.transpose(1, 2).contiguous(),
    "slice": lambda x: x[:, 1:-1, ::2, 3:100],
    "select": lambda x: x[:, -2],
    "chunk": lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    "split": lambda x: sum(part.sum(1) for part in x.split([1, 2, 3], 1)),
    "unbind": lambda x: x.unbind(1)[2] * x.unbind(1)[1],
    "stack": lambda x: torch.stack([x, -x], 2),
    "cat": lambda x: torch.cat([x, x * 2, x[:, :1]], 1),
    "expand_same": lambda x: x.expand(-1, 6, -1, -1),
    "gather": lambda x: x.gather(1, (x[:, :2].sigmoid() * 6).long()),
    "gather_last": lambda x: (x * 2).gather(-1, (x[:1, :, :4, 1:5].sigmoid() * 8).long()),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 3),
    "pad": lambda x: F.pad(x, (1, 2, 0, 3), value=1.5),
    "pad_crop": lambda x: F.pad(x, (-1, 2)),
    "pad_reflect": lambda x: F.pad(x, (1, 2, 3, 1), mode="reflect"),
    "pad_replicate": lambda x: F.pad(x, (1, 2, 3, 1), mode="replicate"),
    "roll": lambda x: x.roll((2, -1, 30), (1, -1, 2)),
    "roll_twice": lambda x: x.roll((3, 1), (1, 1)),
    "roll_all": lambda x: x.roll(-50),
    "pixel_shuffle": lambda x: F.pixel_shuffle(torch.cat([x, x], 1), 2),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest_size": lambda x: F.interpolate(x, (13, 5)),
    "nearest_odd_scale": lambda x: F.interpolate(x, scale_factor=1.7),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear_corners": lambda x: F.interpolate(x, (5, 17), mode="bilinear", align_corners=True),
    "bilinear_odd_scale": lambda x: F.interpolate(x, scale_factor=(1.3, 0.6), mode="bilinear"),
}
PRODUCTS = {
    "bmm": lambda x: x.flatten(0, 1) @ x.flatten(0, 1).transpose(1, 2),
    "matmul": lambda x: x @ x.transpose(2, 3),
    "mm": lambda x: x.flatten(1) @ x.flatten(1).t(),
    "baddbmm": lambda x: torch.baddbmm(
        x[0, :, :, :1], x.flatten(0, 1)[:6], x.flatten(0, 1)[:6].transpose(1, 2)[:, :, :4]
    ),
    "baddbmm_factors": lambda x: torch.baddbmm(x[0, :, :, :1], x[0], x[1].transpose(1, 2), beta=0.5, alpha=0.25),
    "baddbmm_nothing": lambda x: torch.baddbmm(x[0, :, :, :1] / 0, x[0], x[1].transpose(1, 2), beta=0, alpha=-1),
    "addmm_factors": lambda x: torch.addmm(x[0, 0, :, :1], x[0, 1], x[1, 1].t(), beta=3, alpha=0.5),
}
GROUPS = {"elementwise": ELEMENTWISE, "activations": ACTIVATIONS, "pools": POOLS, "moves": MOVES, "products": PRODUCTS}
FUNCTIONS = {name: function for group in GROUPS.values() for name, function in group.items()}


@pytest.mark.parametrize("group", GROUPS)
def test_functions(group, all_agree):
    every = Every({name: (function, image()) for name, function in GROUPS[group].items()})
    all_agree(Straight(every, min_region_size=1), every)


MODULES = {
    "conv": (nn.Conv2d(6, 4, 3), image()),
    "conv_all": (nn.Conv2d(6, 9, (3, 2), (2, 1), (1, 2), (1, 2), 3, bias=False), image()),
    "conv_same": (nn.Conv2d(6, 4, 4, padding="same"), image()),
    "conv_circular": (nn.Conv2d(6, 4, 3, padding=1, padding_mode="circular"), image()),
    "conv_reflect": (nn.Conv2d(6, 4, 3, padding=1, padding_mode="reflect"), image()),
    "conv_unbatched": (nn.Conv2d(6, 4, 3), image(6, 9, 8)),
    "conv1d": (nn.Conv1d(6, 8, 3, 2, 1, 2, 2), image(2, 6, 15)),
    "conv_transpose": (nn.ConvTranspose2d(6, 4, 3, 2, 1, 1, 2), image()),
    "linear": (nn.Linear(8, 5), image()),
    "linear_no_bias": (nn.Linear(8, 5, bias=False), image(3, 8)),
    "batch_norm": (nn.BatchNorm2d(6), image()),
    "batch_norm_plain": (nn.BatchNorm2d(6, affine=False), image()),
    "batch_norm1d": (nn.BatchNorm1d(6), image(4, 6)),
    "layer_norm": (nn.LayerNorm(8), image()),
    "layer_norm_two": (nn.LayerNorm((9, 8), elementwise_affine=False), image()),
    "group_norm": (nn.GroupNorm(3, 6), image()),
    "prelu": (nn.PReLU(6), image()),
    "prelu_one": (nn.PReLU(), image()),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Conv2d(6, 4, 3)), image()),
    "bilinear_module": (nn.UpsamplingBilinear2d(scale_factor=2), image()),
    "dropout": (nn.Sequential(nn.Dropout(0.5), nn.Conv2d(6, 2, 1)), image()),
}


STEPS = ["conv_circular"]  # torch writes its borders, piece by piece

for module, _ in MODULES.values():
    module.eval()
    with torch.no_grad():
        for buffer in module.buffers():
            if buffer.dtype == torch.float32:
                buffer.uniform_(0.5, 1.5)


def test_modules(all_agree):
    every = Every({name: case for name, case in MODULES.items() if name not in STEPS})
    all_agree(Straight(every, min_region_size=1), every)


def test_modules_with_steps(all_agree):
    every = Every({name: MODULES[name] for name in STEPS})
    all_agree(Straight(every, min_region_size=1), every, steps=True)


@pytest.mark.parametrize("name", ["conv", "batch_norm", "max_pool", "channel_shuffle", "bilinear", "bmm"])
def test_through_dynamo(name, compile_model, agree):
    function, x = MODULES[name] if name in MODULES else (FUNCTIONS[name], image())
    # The sum keeps pure moves inside a region worth having.
    agree(compile_model(lambda x: function(x * 1.5) + 1, min_region_size=1), lambda x: function(x * 1.5) + 1, x)


class Scaled(nn.Module):
    """Constants as operands, on either side, computed from parameters."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.rand(6, 1, 1) + 1)
        self.b = nn.Parameter(torch.rand(8))

    def forward(self, x):
        return self.a / (x * self.b + self.a.exp()).square().clamp(min=0.1) - self.b


class Affine(nn.Module):
    """Products with constants, to which something is added."""

    def __init__(self):
        super().__init__()
        self.alpha, self.beta = nn.Parameter(torch.randn(6, 1, 1)), nn.Parameter(torch.randn(6, 1, 1))

    def forward(self, x):
        return torch.addcmul(self.beta, self.alpha, x) + torch.addcmul(x, x.relu(), self.beta, value=-2)


def test_constant_operands(all_agree):
    every = Every({"scaled": (Scaled(), image()), "affine": (Affine(), image())})
    all_agree(Straight(every, min_region_size=1), every)


DECLINED = {
    "weight that is no constant": lambda x: F.conv2d(x, x[:, :, :2, :2]),
    "alpha": lambda x: torch.add(x, x, alpha=2),
    "threshold": lambda x: F.softplus(x, threshold=1),
    "integers": lambda x: (x * 4).long() + 1,
    "bool": lambda x: (x > 0) & (x < 1),
    "indices": lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
    "sum to double": lambda x: x.sum(1, dtype=torch.float64),
    "complex": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "conv3d": lambda x: F.conv3d(x.unsqueeze(0), torch.ones(2, 2, 1, 1, 1)),
    "expand": lambda x: x[:, :1].expand(-1, 3, -1, -1).cumprod(1),
    "rank 9": lambda x: x.view(2, 1, 1, 1, 1, 1, 6, 9, 8).cumsum(0),
}


def test_declined_stays_right(compile_model):
    x = image()

    def every(x):
        return {name: function(x) for name, function in DECLINED.items()}

    with torch.no_grad():
        found, expected = compile_model(every, min_region_size=1)(x), every(x)
        for name in DECLINED:
            torch.testing.assert_close(found[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


def test_every_converter_is_named_once():
    named = {target for target in CONVERTERS if not isinstance(target, torch._ops.OpOverload)}
    assert all(target.startswith("quantized_decomposed.") for target in named)
