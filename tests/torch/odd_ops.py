"""Networks with an op in their midst that no converter takes."""

import torch
from torch import nn

ODD = {
    "cumprod": lambda x: torch.cumprod(x, 2),
    "sort": lambda x: torch.sort(x, 3).values,
    "two outputs": lambda x: torch.sort(x, 3)[0] * 0.5 + torch.sort(x, 3)[1],
    "values by place": lambda x: torch.gather(x.flip(1), 1, torch.topk(x, 8, 1).indices),
    "moved places": lambda x: torch.gather(x, 1, torch.argsort(x, 1)[:, :1].expand(-1, 8, -1, -1)),
    "flip": lambda x: torch.flip(x, (2, 3)),
    "truth values": lambda x: x.flip(3) * torch.any(x > 0.1, 1, keepdim=True),
    "strange order": lambda x: torch.cumprod(x.permute(0, 2, 3, 1), 1).permute(0, 3, 1, 2),
    "several in a row": lambda x: torch.flip(torch.cumprod(torch.cumprod(x, 3), 2), (2, 3)),
    "a number of its own": lambda x: torch.searchsorted(torch.linspace(-1, 1, 20), x).float() + x,
    "views": lambda x: torch.cumprod(x.view(2, 4, 2, 192).transpose(1, 2), 3).transpose(1, 2).reshape(2, 8, 12, 16),
    "a way around": lambda x: torch.cumprod(x, 2) + x,
}


class Odd(nn.Module):
    """An op without a converter between convolutions."""

    def __init__(self, odd):
        super().__init__()
        self.odd = odd
        self.before = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.after = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))

    def forward(self, x):
        return self.after(self.odd(self.before(x)))


class Placed(Odd):
    """Channels by places that the caller gives."""

    def forward(self, x, places):
        return self.after(self.odd(self.before(x), places))


def by_index(x, places):
    return x[:, places]  # raises IndexError


def by_op(x, places):
    return torch.index_select(x, 1, places)  # raises RuntimeError


def by_gather(x, places):
    return torch.gather(x, 1, places.view(1, -1, 1, 1).expand(2, -1, 12, 16))  # raises RuntimeError


def by_sum(x, places):
    """A step, where the others are layers."""
    return torch.index_add(x, 1, places, x)  # raises RuntimeError
