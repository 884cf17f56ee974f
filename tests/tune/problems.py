"""Random routine selection problems and their solution by enumeration, straight from the definition."""

import itertools
import math
import random
from dataclasses import dataclass, field

from softneuro import _C

Label = tuple[float, list[int], list[int]]


@dataclass
class Toy:
    """A DprsProblem in plain Python. Costs are multiples of 1/64, so that sums are exact."""

    schemas: int
    blobs: int = 0
    layers: list[tuple[list[int], list[int], list[Label]]] = field(default_factory=list)
    groups: list[tuple[float, list[tuple[int, list[int], list[int]]]]] = field(default_factory=list)
    adapts: list[list[float]] = field(default_factory=list)
    inputs: list[tuple[int, list[int]]] = field(default_factory=list)
    outputs: list[tuple[int, int]] = field(default_factory=list)

    def build(self) -> _C.DprsProblem:
        """The same for the solver."""
        layers = [_C.DprsLayer(i, o, [_C.DprsLabel(*label) for label in labels]) for i, o, labels in self.layers]
        groups = [_C.DprsGroup(cost, [_C.DprsCover(*cover) for cover in covers]) for cost, covers in self.groups]
        return _C.DprsProblem(self.schemas, self.blobs, layers, groups, self.adapts, self.inputs, self.outputs)

    def new_blob(self, rng: random.Random, holes: float = 0.0) -> int:
        """Adds a blob with a random conversion table, a share `holes` of it impossible."""
        table = [
            0.0 if a == b else math.inf if rng.random() < holes else rng.randrange(1, 256) / 64
            for a in range(self.schemas)
            for b in range(self.schemas)
        ]
        self.adapts.append(table)
        self.blobs += 1
        return self.blobs - 1

    def consumers(self, blob: int) -> list[int]:
        """Layers that read a blob."""
        return [i for i, (inputs, _, _) in enumerate(self.layers) if blob in inputs]


def random_labels(rng: random.Random, toy: Toy, inputs: int, outputs: int, count: int) -> list[Label]:
    """Random labels; slots share a schema more often than not, as real routines' do."""
    labels: list[Label] = []
    for _ in range(count):
        schema = rng.randrange(toy.schemas)

        def pick(schema: int = schema) -> int:
            return schema if rng.random() < 0.6 else rng.randrange(toy.schemas)

        ins = [-1 if rng.random() < 0.05 else pick() for _ in range(inputs)]
        labels.append((rng.randrange(0, 256) / 64, ins, [pick() for _ in range(outputs)]))
    return labels


def random_group(rng: random.Random, toy: Toy, members: list[int]) -> bool:
    """Adds a group over the layers if they may be one; says whether they may."""
    inside = set(members)
    covers = []
    for i in members:
        inputs, outputs, _ = toy.layers[i]
        for blob in outputs:
            readers = set(toy.consumers(blob))
            wanted = any(blob == b for b, _ in toy.outputs)
            if readers & inside and (readers - inside or wanted):
                return False
        covers.append((i, [rng.randrange(toy.schemas) for _ in inputs], [rng.randrange(toy.schemas) for _ in outputs]))
    producer = {blob: i for i, (_, outputs, _) in enumerate(toy.layers) for blob in outputs}
    tainted: set[int] = set()
    for i, (inputs, _, _) in enumerate(toy.layers):
        above = {producer[b] for b in inputs if b in producer}
        left = bool(above & tainted) or (i not in inside and bool(above & inside))
        if left and i in inside:
            return False
        if left:
            tainted.add(i)
    toy.groups.append((rng.randrange(0, 256) / 64, covers))
    return True


def random_toy(seed: int, max_layers: int = 6, dense: bool = False) -> Toy:
    """A random net with branches, joins, several inputs and outputs, shared conversions and overlapping groups."""
    rng = random.Random(seed)
    toy = Toy(schemas=rng.randint(1, 4))
    holes = rng.choice([0.0, 0.0, 0.15])
    for _ in range(rng.randint(1, 2)):
        blob = toy.new_blob(rng, holes)
        toy.inputs.append((blob, rng.sample(range(toy.schemas), rng.randint(1, min(2, toy.schemas)))))
    for _ in range(rng.randint(1, max_layers)):
        if dense:
            inputs = list(range(toy.blobs))
        else:
            recent = range(max(0, toy.blobs - rng.choice([1, 2, 4, 99])), toy.blobs)
            inputs = [rng.choice(recent) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
        outputs = [toy.new_blob(rng, holes) for _ in range(rng.choice([1, 1, 1, 2]))]
        toy.layers.append((inputs, outputs, random_labels(rng, toy, len(inputs), len(outputs), rng.randint(1, 4))))
    loose = [b for b in range(toy.blobs) if not toy.consumers(b)]
    for blob in loose + [b for b in range(toy.blobs) if rng.random() < 0.1]:
        if rng.random() < 0.8:
            toy.outputs.append((blob, rng.randrange(toy.schemas)))
    for _ in range(rng.choice([0, 0, 2, 4, 8])):
        start = rng.randrange(len(toy.layers))
        random_group(rng, toy, sorted({start, *rng.choices(range(start, len(toy.layers)), k=rng.randint(1, 2))}))
    return toy


@dataclass
class Truth:
    """What enumeration finds; infinite where there is no plan."""

    best: float
    labels: list[list[float]]
    groups: list[float]
    regrets: dict[int, float]
    plans: dict[tuple[tuple[int, int], ...], float]


def closure(table: list[float], n: int) -> list[float]:
    """Cheapest chains of conversions by relaxing n times."""
    cost = [0.0 if i // n == i % n else table[i] for i in range(n * n)]
    for _ in range(n):
        for a, b, c in itertools.product(range(n), repeat=3):
            cost[a * n + c] = min(cost[a * n + c], cost[a * n + b] + cost[b * n + c])
    return cost


def plan_cost(toy: Toy, chains: list[list[float]], plan: tuple[tuple[int, int], ...]) -> float:
    """The cost of one plan, (label, group) per layer; infinite if a group is torn or a conversion missing."""
    total = 0.0
    made: dict[int, list[int]] = {blob: list(schemas) for blob, schemas in toy.inputs}
    wanted: dict[int, set[int]] = {blob: set() for blob in range(toy.blobs)}
    for blob, schema in toy.outputs:
        wanted[blob].add(schema)
    for g in {group for _, group in plan if group >= 0}:
        members = {layer for layer, _, _ in toy.groups[g][1]}
        if any(plan[i][1] != g for i in members):
            return math.inf
        total += toy.groups[g][0]
    for i, (label, group) in enumerate(plan):
        inputs, outputs, labels = toy.layers[i]
        if group < 0:
            cost, ins, outs = labels[label]
            total += cost
            skip_in: set[int] = set()
            skip_out: set[int] = set()
        else:
            members = {layer for layer, _, _ in toy.groups[group][1]}
            ins, outs = next((a, b) for layer, a, b in toy.groups[group][1] if layer == i)
            skip_in = {b for b in inputs if any(b in toy.layers[m][1] for m in members)}
            skip_out = {b for b in outputs if members & set(toy.consumers(b))}
        for blob, schema in zip(inputs, ins, strict=True):
            if schema >= 0 and blob not in skip_in:
                wanted[blob].add(schema)
        for blob, schema in zip(outputs, outs, strict=True):
            if blob not in skip_out:
                made[blob] = [schema]
    for blob, schemas in wanted.items():
        for schema in schemas:
            total += min(chains[blob][source * toy.schemas + schema] for source in made[blob])
    return total


def enumerate_plans(toy: Toy) -> Truth:
    """Every plan's cost, and from these the optimum, the min-marginals and the regrets."""
    chains = [closure(table, toy.schemas) for table in toy.adapts]
    ways = [[(k, -1) for k in range(len(labels))] for _, _, labels in toy.layers]
    for g, (_, covers) in enumerate(toy.groups):
        for layer, _, _ in covers:
            ways[layer].append((-1, g))
    plans = {plan: plan_cost(toy, chains, plan) for plan in itertools.product(*ways)}
    labels = [[math.inf] * len(layer[2]) for layer in toy.layers]
    groups = [math.inf] * len(toy.groups)
    for plan, cost in plans.items():
        for i, (label, group) in enumerate(plan):
            if group < 0:
                labels[i][label] = min(labels[i][label], cost)
            else:
                groups[group] = min(groups[group], cost)
    return Truth(min(plans.values()), labels, groups, {}, plans)
