"""Regions put into a graph; and a region without its steps, for where its net loses or cannot be made."""

from __future__ import annotations

import copy
import functools
import logging
import weakref
from typing import Any

import torch
from torch.fx import GraphModule

from softneuro.torch_backend import registry
from softneuro.torch_backend.call.direct import call_region
from softneuro.torch_backend.call.runtime import RegionRuntime
from softneuro.torch_backend.compile.host import host
from softneuro.torch_backend.compile.ops.sorting import sort_stable
from softneuro.torch_backend.compile.partitioning.partitioner import Partition, Region, find_regions, replace_regions
from softneuro.torch_backend.options import Options

log = logging.getLogger("softneuro.torch_backend")


def put_regions(partition: Partition, options: Options, *, by_python: bool) -> list[RegionRuntime]:
    """Puts calls of regions into the partition's module, which Python runs or is given to a compiler."""
    runtimes = []
    for region in partition.regions:
        apart = functools.partial(Apart, region, options)
        runtime = RegionRuntime(region, options, host.compile_region(region, options), apart)
        runtimes.append(runtime)
        log.info("region %s: %d ops, %d inputs, %d outputs", runtime.handle, region.ops, len(region.inputs),
                 len(region.outputs))  # fmt: skip
    calls = [(region, runtime.handle) for region, runtime in zip(partition.regions, runtimes, strict=True)]
    replace_regions(partition.module, calls, call_region if by_python else torch.ops.softneuro.run_region.default)
    sort_stable(partition.module)
    return runtimes


class Apart:
    """The ops of a region: regions of their own between its steps and what a converter has declined."""

    def __init__(self, region: Region, options: Options) -> None:
        graph = copy.deepcopy(region.module.graph)
        copies = dict(zip(region.module.graph.nodes, graph.nodes, strict=True))
        weights = {copies[node] for node in region.weight_nodes}
        declined = {copies[node]: reason for node, reason in region.declined.items()}
        self.partition = find_regions(
            GraphModule({}, graph), weights, options.min_region_size, join=False, declined=declined
        )
        self.regions = put_regions(self.partition, options, by_python=True)
        for runtime in self.regions:
            weakref.finalize(self, registry.remove, runtime.handle).atexit = False

    def __call__(self, *arguments: Any) -> Any:
        """The region's outputs. Arguments: as of its module."""
        return self.partition.module.forward(*arguments)
