"""The core of softneuro."""

__version__: str

class Error(RuntimeError):
    """What went wrong, where, and what to do about it."""

def cpu_id() -> str: ...
def cpu_brand() -> str: ...
def kernel_hash() -> str: ...
def physical_cores() -> int: ...
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
    """A routine selection problem; see csrc/tune/dprs.h for its meaning."""

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
