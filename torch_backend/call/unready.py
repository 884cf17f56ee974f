"""One call that found no net ready: what the core's runtime asks of it, and of the tensors that it changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

import softneuro
from softneuro import tuner
from softneuro.error_measure import judged_error
from softneuro.torch_backend import _native
from softneuro.torch_backend.compile.ops.reals import numbers
from softneuro.torch_backend.freshness.weights import pieces_of

if TYPE_CHECKING:
    from softneuro.torch_backend.call.runtime import RegionRuntime

# True while a plan is wanted that was made for the very shapes at hand.
tune_anew: ContextVar[bool] = ContextVar("tune_anew", default=False)


class Call:
    """One call that found no net ready, as `softneuro._C.Region.run` takes it."""

    def __init__(
        self,
        region: RegionRuntime,
        inputs: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        sizes: Sequence[int],
    ) -> None:
        self.signature = region.signature(inputs, sizes)
        self.hosts: list[torch.Tensor] = []
        self.nets: list[torch.Tensor] = []
        self._region, self._inputs, self._weights, self._sizes = region, inputs, weights, sizes
        self._known, self.now = region.weights.look(weights)
        self._truths: list[torch.Tensor] | None = None
        self._bar: tuner.Bar | None = None
        self._ready = 0  # the last net that ran
        self._net_was_last = False
        self.open_shapes = region.open_shapes
        self.anew = tune_anew.get()
        self.declined = "it is on an empty tensor" if any(0 in tensor.shape for tensor in inputs) else ""

    def lower(self) -> tuple[softneuro.Graph, _native.PaidRuns, list[list[int]]]:
        """The graph for these inputs, what of the weights it is made of, and outputs' axes as they are to lie."""
        region, weights = self._region, self._weights
        self._known.learn(pieces_of(weights, set()))  # before anything reads them
        low = region.lower(self.signature, self._inputs, weights, self._sizes)
        return low.graph, self._known.learn(pieces_of(weights, low.watched)), low.orders

    def run_host(self) -> None:
        """Outputs by the host's own ops."""
        self._net_was_last = False
        self.hosts = self._region.run_host(self._inputs, self._weights, self._sizes)

    def run_instead(self) -> None:
        """Outputs by what runs where a net has lost."""
        self._net_was_last = False
        self.hosts = self._region.run_otherwise(self._inputs, self._weights, self._sizes)

    def run_net(self, ready: int) -> bool:
        """Outputs by the net at this address. False if a step of it has raised."""
        self._ready, self._net_was_last = ready, True
        made = torch.ops.softneuro.run_made(self._region.handle, self._inputs, ready)
        self.nets = self._region.outputs(made, self._inputs) if made else []
        return bool(made)

    def error(self, max_error: float) -> float:
        """The worst of the net's outputs, on a scale on which max_error is allowed."""
        if self._truths is None:
            self._truths = self._region.truths([*self._inputs_apart(), *self._sizes, *self._weights])
        truths = self._truths or [None] * len(self.hosts)
        nets, hosts = self._results_of_both()
        errors = (
            judged_error(numbers(net), numbers(host), None if truth is None else numbers(truth), in_steps, max_error)
            for net, host, truth, in_steps in zip(
                nets, hosts, truths, self._region.region.outputs_in_steps, strict=True
            )
        )
        return max(errors, default=0.0)

    def _inputs_apart(self) -> list[torch.Tensor]:
        """The inputs, but copies of those that the region writes to."""
        written = self._region.written
        return [tensor.clone() if place in written else tensor for place, tensor in enumerate(self._inputs)]

    def _results_of_both(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Outputs of the net and of the host, each input that both have written to as it was after either."""
        if not self._region.written:
            return self.nets, self.hosts
        net_was_last, places = self._net_was_last, self._region.updates
        last = [None if place is None else self._inputs[place].clone() for place in places]
        if net_was_last:
            self.run_host()
        else:
            self.run_net(self._ready)
        other = [None if place is None else self._inputs[place].clone() for place in places]
        by_net, by_host = (last, other) if net_was_last else (other, last)
        nets = [made if own is None else own for made, own in zip(self.nets, by_net, strict=True)]
        hosts = [made if own is None else own for made, own in zip(self.hosts, by_host, strict=True)]
        return nets, hosts

    def settle(self, by_net: bool) -> None:
        """Leaves in the inputs that the region writes to what belongs to the call's results.

        Either side writes all rows that it writes at every run, and reads no others of them before. So whoever has run
        last has left its own.
        """
        if self._net_was_last and not by_net and self._region.written:
            self.run_host()

    def progress(self, done: int, total: int) -> None:
        """Told of measuring, now and then."""
        if self._bar is None:
            self._bar = tuner.Bar()
        (tuner.listener.get() or self._bar)(done, total)

    def close(self) -> None:
        """Ends what is shown of it."""
        if self._bar is not None:
            self._bar.close()

    def inputs(self) -> str:
        """Their shapes in words."""
        return ", ".join("x".join(map(str, t.shape)) for t in self._inputs)
