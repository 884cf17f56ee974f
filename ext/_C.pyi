"""The core of softneuro."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

class Error(RuntimeError):
    """What went wrong, where, and what to do about it."""

class PlanFileError(Error):
    """The file of the option `plan` cannot be used."""

def cpu_id() -> str: ...
def cpu_brand() -> str: ...
def kernel_hash() -> str: ...
def physical_cores() -> int: ...
def cores_may_be_apart() -> bool: ...
def available_extensions() -> list[str]: ...
def available_isas() -> list[str]: ...
def caches() -> dict[str, int]: ...

class DprsLabel:
    """One way to compute a layer: cost and the schema of each input and output slot."""

    cost: float
    inputs: list[int]
    outputs: list[int]
    def __init__(self, cost: float, inputs: list[int], outputs: list[int]) -> None: ...

class DprsLayer:
    """A layer: blob ids of its input and output slots, and its labels."""

    inputs: list[int]
    outputs: list[int]
    labels: list[DprsLabel]
    def __init__(self, inputs: list[int], outputs: list[int], labels: list[DprsLabel]) -> None: ...

class DprsCover:
    """A layer's part in a group."""

    layer: int
    inputs: list[int]
    outputs: list[int]
    def __init__(self, layer: int, inputs: list[int], outputs: list[int]) -> None: ...

class DprsGroup:
    """A candidate that computes several layers at once."""

    cost: float
    covers: list[DprsCover]
    def __init__(self, cost: float, covers: list[DprsCover]) -> None: ...

class DprsLimits:
    """When to stop solving exactly, and when to stop searching."""

    max_table: int
    max_entries: int
    mini_table: int
    max_nodes: int
    time_limit_s: float

class DprsProblem:
    """A routine selection problem; see csrc/tune/search/dprs.h for its meaning."""

    def __init__(
        self,
        schemas: int,
        blobs: int,
        layers: list[DprsLayer],
        groups: list[DprsGroup],
        adapts: list[list[float]],
        inputs: list[tuple[int, list[int]]],
        outputs: list[tuple[int, int]],
    ) -> None: ...

class DprsStats:
    """How large the problem was."""

    @property
    def variables(self) -> int: ...
    @property
    def largest_table(self) -> float: ...
    @property
    def table_entries(self) -> float: ...
    @property
    def nodes(self) -> int: ...

class DprsResult:
    """A plan of a DprsProblem and what is known about it."""

    @property
    def choices(self) -> list[tuple[int, int]]: ...  # (label, -1) or (-1, group)
    @property
    def adapts(self) -> list[tuple[int, int, int, float]]: ...  # blob, from, to, cost
    @property
    def cost(self) -> float: ...
    @property
    def lower_bound(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def exact(self) -> bool: ...
    @property
    def label_marginals(self) -> list[list[float]]: ...
    @property
    def group_marginals(self) -> list[float]: ...
    @property
    def regrets(self) -> list[float]: ...
    @property
    def stats(self) -> DprsStats: ...

def dprs_solve(problem: DprsProblem, limits: DprsLimits = ...) -> DprsResult: ...
def dprs_k_best(problem: DprsProblem, best: DprsResult, k: int, limits: DprsLimits = ...) -> list[DprsResult]: ...
def dprs_solve_within(
    problem: DprsProblem, label_bytes: Sequence[Sequence[float]], group_bytes: Sequence[float], limit: float, k: int = 1
) -> tuple[list[DprsResult], bool, bool]: ...
def dprs_within(
    problem: DprsProblem,
    bounds: Sequence[tuple[Sequence[Sequence[float]], Sequence[float], Sequence[Sequence[float]], float]],
    epsilon: float = ...,
    front: int = ...,
    most_sums: int = ...,
) -> tuple[DprsResult | None, float, dict[str, Any]]: ...

class TuneMode(enum.Enum):
    """When routines are measured."""

    profile = 0
    cached = 1
    off = 2

class HostMode(enum.Enum):
    """What runs the parts that stay with the host."""

    eager = 0
    inductor = 1

class Options:
    """The options of every front door; see option_table()."""

    schemas: list[str]
    max_error: float
    threads: int
    tune: TuneMode
    time_budget_s: float
    host: HostMode
    plan: str
    min_region_size: int
    never_worse: bool
    shortcuts: bool
    strict_nonfinite: bool
    flush_denormals: bool
    strict: bool
    @property
    def max_memory(self) -> str: ...
    @property
    def keep(self) -> str: ...
    @property
    def fixed(self) -> str: ...
    verbose: int
    def __init__(self) -> None: ...

def option_table() -> list[dict[str, str]]: ...
def parse_options(values: Mapping[str, str]) -> Options: ...
def pins_in_floats(keep: str, fixed: str) -> tuple[str, str]: ...
def format_options(options: Options) -> dict[str, str]: ...

class CostKey:
    """What a record is valid for; `graph` is empty for what holds in all graphs."""

    def __init__(
        self, device: str, threads: int, signature: str, descriptor: str, version: str, graph: str = ""
    ) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def signature(self) -> str: ...
    @property
    def descriptor(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def graph(self) -> str: ...

class CostDb:
    """What tuning has learned, kept between runs. An empty directory means the default one."""

    def __init__(self, directory: str = "", max_bytes: int = ...) -> None: ...
    @staticmethod
    def default_directory() -> str: ...
    def find(self, key: CostKey) -> tuple[float, int, float] | None: ...  # of a time: seconds, samples, spread
    def add(self, key: CostKey, seconds: float, samples: int = 1, spread: float = 0.0) -> None: ...
    def get(self, kind: str, key: CostKey) -> dict[str, Any] | None: ...
    def put(self, kind: str, key: CostKey, fields: dict[str, Any]) -> None: ...
    def records(self) -> list[tuple[str, CostKey, dict[str, Any]]]: ...  # kind, key, fields; the oldest first
    def compact(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def path(self) -> str: ...

class PlanKey:
    """What a plan is for."""

    graph: str
    shapes: str
    device: str
    threads: int
    calibration: str
    def __init__(self, graph: str, shapes: str, device: str, threads: int, calibration: str = "") -> None: ...

class PlanGrid:
    """What a blob of reals is stored by where the plan has it in bytes."""

    blob: int
    scale: float
    zero_point: int
    least: int
    most: int
    def __init__(self, blob: int, scale: float, zero_point: int, least: int = 0, most: int = 255) -> None: ...

class PlanStep:
    """The routine chosen for one layer; seconds are predicted."""

    layer: int
    type: str
    descriptor: str
    seconds: float
    def __init__(self, layer: int, type: str, descriptor: str, seconds: float) -> None: ...  # noqa: A002 - the field is named so

class PlanAdapt:
    """One conversion of a blob between two schemas."""

    blob: int
    source: str
    target: str
    seconds: float
    def __init__(self, blob: int, source: str, target: str, seconds: float) -> None: ...

class PlanSection:
    """The chosen routines of one graph at one shape."""

    key: PlanKey
    steps: list[PlanStep]
    adapts: list[PlanAdapt]
    grids: list[PlanGrid]
    seconds: float
    lower_bound: float
    errors: dict[str, float]
    def __init__(
        self, key: PlanKey, steps: list[PlanStep], adapts: list[PlanAdapt], seconds: float, lower_bound: float
    ) -> None: ...

class PlanFile:
    """Plans as text, one section per graph, shapes, device and threads."""

    @staticmethod
    def parse(text: str | bytes) -> PlanFile: ...
    @staticmethod
    def load(path: str) -> PlanFile: ...
    def save(self, path: str) -> None: ...
    def format(self) -> str: ...
    def find(self, key: PlanKey) -> PlanSection | None: ...
    def set(self, plan: PlanSection) -> None: ...
    @property
    def plans(self) -> list[PlanSection]: ...

def set_log_sink(sink: Callable[[int, str], object] | None) -> None: ...

class Graph:
    """A DAG of layers with fixed shapes. See docs/layers.md for layer types."""

    def __init__(self) -> None: ...
    def input(
        self, name: str, shape: Sequence[int], schema: str = "float32", quantization: dict[str, Any] | None = None
    ) -> int: ...
    def add(
        self,
        type: str,  # noqa: A002 - the word of the design
        inputs: Sequence[int],
        *,
        name: str = "",
        weights: Mapping[str, Any] = ...,
        post: Mapping[str, Any] = ...,
        **attrs: Any,
    ) -> int: ...
    def add_host(
        self,
        name: str,
        op: str,
        function: Callable[[list[Any], list[Any]], object],
        inputs: Sequence[int],
        outputs: Sequence[tuple[Sequence[int], str]],
        *,
        read_only: bool = True,
        strided: bool = False,
    ) -> list[int]: ...
    def output(self, blob: int, schema: str | None = None) -> None: ...
    def shape(self, blob: int) -> tuple[int, ...]: ...
    def dtype(self, blob: int) -> str: ...
    def outputs_of(self, blob: int) -> list[int]: ...
    def optimize(self) -> None: ...
    def layers(self) -> list[dict[str, Any]]: ...
    @property
    def input_shapes(self) -> list[tuple[int, ...]]: ...
    @property
    def output_shapes(self) -> list[tuple[int, ...]]: ...
    @property
    def input_schemas(self) -> list[str]: ...
    @property
    def output_schemas(self) -> list[str]: ...
    def canonical(self) -> str: ...
    def structural_hash(self) -> str: ...
    def weights_identity(self) -> str: ...
    def reference(self, inputs: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.float64]]: ...

class LayerReport:
    """What a plan chose for one layer; seconds of the routine alone, regret of the whole plan."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def descriptor(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def regret(self) -> float: ...
    @property
    def measured(self) -> bool: ...
    @property
    def in_floats(self) -> str: ...
    @property
    def sparse_s(self) -> float: ...
    @property
    def dense_s(self) -> float: ...

class Plan:
    """The routine of every layer and the conversions between them."""

    @property
    def graph_hash(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def layers(self) -> list[LayerReport]: ...
    @property
    def adapts(self) -> list[tuple[int, str, str, float]]: ...
    @property
    def predicted_s(self) -> float: ...
    @property
    def dense_s(self) -> float: ...
    @property
    def best_s(self) -> float: ...
    @property
    def lower_bound_s(self) -> float: ...
    @property
    def grids(self) -> list[tuple[int, float, int]]: ...
    @property
    def corrected(self) -> set[tuple[int, str]]: ...
    @property
    def foretold_error(self) -> float: ...
    @property
    def exact(self) -> bool: ...
    @property
    def integrated_s(self) -> float: ...
    @property
    def tuning_s(self) -> float: ...
    @property
    def stages(self) -> dict[str, tuple[float, int]]: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def memory(self) -> dict[str, Any]: ...
    def text(self, graph: Graph) -> str: ...
    @property
    def carried(self) -> bool: ...
    def carry_over(self, graph: Graph, threads: int) -> Plan: ...
    def save(self, path: str, graph: Graph) -> None: ...

class Net:
    """A graph prepared for execution: immutable, run from any thread."""

    def __init__(self, graph: Graph, plan: Plan | Sequence[str] | None = None, *, threads: int = 1) -> None: ...
    def run(self, inputs: Sequence[npt.NDArray[np.float32]]) -> list[npt.NDArray[np.float32]]: ...
    def profile(
        self, inputs: Sequence[npt.NDArray[np.float32]], rounds: int = 10
    ) -> list[tuple[int, str, str, float]]: ...
    @property
    def threads(self) -> int: ...
    @property
    def stats(self) -> dict[str, int]: ...
    def memory(self) -> list[dict[str, Any]]: ...
    @staticmethod
    def shared_packed_bytes() -> int: ...

class Part:
    @property
    def nodes(self) -> list[int]: ...
    @property
    def ops(self) -> int: ...
    @property
    def steps(self) -> list[list[int]]: ...

class Partition:
    @property
    def parts(self) -> list[Part]: ...
    @property
    def host(self) -> dict[int, str]: ...
    @property
    def step_reasons(self) -> dict[int, str]: ...
    @property
    def cuts(self) -> list[tuple[int, int, list[int]]]: ...

class OpGraph:
    def __init__(self) -> None: ...
    def add_value(self, *, is_output: bool = False, stays_inside: bool = False) -> int: ...
    def add_node(
        self,
        op: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        after: Sequence[int] = (),
        refusal: str = "",
        may_be_step: bool = False,
        ops: int = 0,
        at_rim: str = "stays",
        role: str = "none",
        with_readers: bool = False,
        takes_inside: bool = False,
        has_effect: bool = False,
    ) -> int: ...
    def find_parts(self, *, min_region_size: int = 1, join: bool = True) -> Partition: ...

class Region:
    """Nets, plans and verdicts of a region by signature."""

    def __init__(self, name: str, content: str, host: str, options: Mapping[str, str]) -> None: ...
    def run(self, signature: Sequence[int], weights: tuple[int, int], call: object, threads: int) -> bool: ...
    def run_after_error(self, signature: Sequence[int], call: object, threads: int) -> None: ...
    def shapes(self) -> list[tuple[tuple[int, ...], dict[str, Any]]]: ...
    def reconfigure(self, options: Mapping[str, str]) -> None: ...
    def finish_calibration(self, progress: Callable[[int, int], object] | None = None) -> int: ...
    def clear(self) -> None: ...
    def start_afresh(self) -> None: ...
    @property
    def outside(self) -> tuple[int, int, list[tuple[str, float, float, float, int]]]: ...
    @property
    def held_up(self) -> str: ...
    @property
    def nets(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def credit_ns(self) -> int: ...

def region_add(name: str, region: Region) -> None: ...
def region_drop(name: str) -> None: ...
def pause_first_sights(pause: bool) -> None: ...
def left_to_host() -> bool: ...
def set_region_error(text: str) -> None: ...
def weight_traits(weight: Any) -> dict[str, Any]: ...
def registry() -> list[dict[str, Any]]: ...
def nearest_shapes(wanted: Sequence[int], known: Sequence[Sequence[int]]) -> int | None: ...
def load_plan(graph: Graph, options: Options, threads: int) -> Plan | None: ...
def tune(
    graph: Graph, options: Options, threads: int, progress: Callable[[int, int], object] | None = None
) -> Plan: ...
def measure_fma(isa: str, threads: int, seconds: float) -> float: ...
def measure_bandwidth(traffic: str, bytes: int, threads: int, seconds: float) -> float: ...  # noqa: A002
def bytes_within(level: int, threads: int) -> int: ...
def evict_caches(threads: int) -> None: ...

class RoutineTimer:
    """One routine prepared for one layer, to be timed."""

    def __init__(
        self,
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        descriptor: str,
        post: Mapping[str, Any] = ...,
        threads: int = 1,
        dtypes: Sequence[str | Mapping[str, Any]] = (),
    ) -> None: ...
    def run(self, runs: int = 1, evict: bool = False) -> list[float]: ...
    @property
    def workspace(self) -> int: ...

class OutputError:
    """One output's distances from the truth, relative L2."""

    def __init__(self, error: float = 0.0, host: float = 0.0) -> None: ...
    @property
    def error(self) -> float: ...
    @property
    def host(self) -> float: ...
    def allowed(self, max_error: float) -> float: ...
    def against(self, max_error: float) -> float: ...
    def within(self, max_error: float) -> bool: ...

def judged_error(
    result: np.ndarray[Any, Any],
    host: np.ndarray[Any, Any],
    truth: np.ndarray[Any, Any] | None,
    in_steps: bool,
    max_error: float,
) -> float: ...
def measure_error(
    result: npt.NDArray[Any], host: npt.NDArray[Any], truth: npt.NDArray[Any] | None = None
) -> OutputError: ...
def error_of_steps(distance: float) -> float: ...

class BlobStatistics:
    """What calibration keeps of a blob's values, however many there are."""

    def __init__(self) -> None: ...
    def observe(self, values: npt.NDArray[np.floating[Any]]) -> None: ...
    def merge(self, other: BlobStatistics) -> None: ...
    def bins(self) -> list[tuple[float, float, int]]: ...  # low, high, count; ascending, none empty
    @property
    def count(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def nans(self) -> int: ...
    @property
    def infinities(self) -> int: ...
    @property
    def nonfinite(self) -> int: ...
    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...
    @property
    def average(self) -> tuple[float, float]: ...

def fit(statistics: BlobStatistics, method: str) -> tuple[float, float]: ...
def fit_method(method: str) -> str: ...
def grid_of(least: float, most: float) -> tuple[float, int]: ...

class BlobRange:
    """A blob's calibrated range, and the error of having it in bytes."""

    blob: int
    name: str
    least: float
    most: float
    count: int
    nonfinite: int
    error: float | None
    seen: tuple[float, float] | None
    def __init__(
        self,
        blob: int,
        name: str,
        least: float,
        most: float,
        count: int = 0,
        nonfinite: int = 0,
        error: float | None = None,
        seen: tuple[float, float] | None = None,
    ) -> None: ...

class BlobMeans:
    """Means by channel of a blob that a layer with weights reads."""

    blob: int
    values: list[float]
    def __init__(self, blob: int, values: list[float]) -> None: ...

class LayerError:
    """The error of having a layer in another form than floats."""

    layer: int
    name: str
    form: str
    error: float | None
    corrected: bool
    def __init__(
        self, layer: int, name: str, form: str, error: float | None = None, corrected: bool = False
    ) -> None: ...

class RangeSection:
    """The calibrated ranges of one graph with one set of weights. Lists are copies: assign them to change them."""

    structure: str
    weights: str
    method: str
    batches: int
    samples: int
    blobs: list[BlobRange]
    layers: list[LayerError]
    means: list[BlobMeans]
    def __init__(
        self,
        structure: str,
        weights: str,
        method: str,
        batches: int = 0,
        samples: int = 0,
        blobs: list[BlobRange] = ...,
        layers: list[LayerError] = ...,
        means: list[BlobMeans] = ...,
    ) -> None: ...

class RangeTable:
    """Calibrated ranges as text, one section per graph and weights."""

    def __init__(self) -> None: ...
    @staticmethod
    def parse(text: str | bytes) -> RangeTable: ...
    @staticmethod
    def load(path: str) -> RangeTable: ...
    def save(self, path: str) -> None: ...
    def format(self) -> str: ...
    def find(self, structure: str, weights: str) -> RangeSection | None: ...
    def set(self, section: RangeSection) -> None: ...
    @property
    def sections(self) -> list[RangeSection]: ...

class Calibrator:
    """Learns the ranges of a model's blobs, and what roundings do, on real data."""

    def __init__(self, graph: Graph, threads: int = 1) -> None: ...
    def watching(self, graph: Graph) -> Net: ...
    def end_batch(self) -> None: ...
    @property
    def batches(self) -> int: ...
    def finish(self, method: str = "percentile:99.99", seconds: float = 20.0) -> RangeSection: ...

def range_key(graph: Graph) -> str: ...

class testing:  # noqa: N801 - a submodule
    """Single routines, run between guard zones."""

    @staticmethod
    def cost_line_checksum(text: str) -> str: ...
    @staticmethod
    def run_routine(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        inputs: Sequence[npt.NDArray[np.float32]],
        descriptor: str,
        post: Mapping[str, Any] = ...,
        threads: int = 1,
        dtypes: Sequence[str | dict[str, Any]] = ...,
    ) -> npt.NDArray[np.float32]: ...
    @staticmethod
    def accepting(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        post: Mapping[str, Any] = ...,
        threads: int = 1,
        dtypes: Sequence[str | dict[str, Any]] = ...,
    ) -> list[str]: ...
    @staticmethod
    def expected_error(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        descriptor: str,
    ) -> float: ...
    @staticmethod
    def packed_bytes(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[tuple[int, ...]],
        descriptor: str,
        post: Mapping[str, Any] = ...,
        dtypes: Sequence[str | dict[str, Any]] = ...,
    ) -> tuple[int, int]: ...
    @staticmethod
    def packing(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[tuple[int, ...]],
        descriptor: str,
        post: Mapping[str, Any] = ...,
        dtypes: Sequence[str | dict[str, Any]] = ...,
    ) -> list[tuple[str, str, int, int, int]]: ...
    @staticmethod
    def refusals(
        type: str,  # noqa: A002
        attrs: Mapping[str, Any],
        weights: Mapping[str, Any],
        shapes: Sequence[Sequence[int]],
        post: Mapping[str, Any] = ...,
        threads: int = 1,
    ) -> dict[str, str]: ...
