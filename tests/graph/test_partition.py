"""Properties of partitions, on random graphs: the same code serves both doors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import softneuro
from softneuro._C import OpGraph

REFUSAL = "there is no layer for it"


@st.composite
def told(draw, most=24):
    """Nodes as (sources, keywords of add_node); each makes one value."""
    nodes = []
    for index in range(draw(st.integers(1, most))):
        near = st.integers(max(0, index - 5), index - 1) if index else st.nothing()
        sources = draw(st.lists(near, max_size=3, unique=True)) if index else []
        after = draw(st.lists(near, max_size=1)) if index else []
        kind = draw(st.sampled_from(["layer", "layer", "layer", "move", "step", "host"]))
        keywords = {"after": [n for n in after if n not in sources]}
        if kind == "layer":
            keywords |= {"ops": draw(st.integers(1, 2))}
        elif kind == "move":
            keywords |= {"at_rim": draw(st.sampled_from(["stays", "leaves", "converts"])), "may_be_step": True}
        else:
            keywords |= {"refusal": REFUSAL, "may_be_step": kind == "step"}
        nodes.append((sources, keywords))
    return nodes


def graph_of(nodes, inside=(), outputs=()):
    graph = OpGraph()
    read = {source for sources, _ in nodes for source in sources}
    for index in range(len(nodes)):
        graph.add_value(is_output=index in outputs or index not in read, stays_inside=index in inside)
    for index, (sources, keywords) in enumerate(nodes):
        assert graph.add_node(f"op{index}", sources, [index], **keywords) == index
    return graph


def place_of(found, count):
    place = [-1] * count
    for number, part in enumerate(found.parts):
        for n in part.nodes:
            assert place[n] == -1  # no node is in two
            place[n] = number
    return place


def waits_for(nodes):
    return [[*sources, *keywords.get("after", [])] for sources, keywords in nodes]


@given(told(), st.integers(1, 4), st.booleans())
def test_regions(nodes, least, join):
    found = graph_of(nodes).find_parts(min_region_size=least, join=join)
    place = place_of(found, len(nodes))
    # Regions, and what is outside them, can be put in an order in which each follows what it waits for.
    groups = {n: ("part", p) if p >= 0 else ("node", n) for n, p in enumerate(place)}
    before = {group: set() for group in groups.values()}
    for n, sources in enumerate(waits_for(nodes)):
        before[groups[n]].update(groups[s] for s in sources if groups[s] != groups[n])
    done = set()
    while ready := [group for group in before if group not in done and before[group] <= done]:
        done.update(ready)
    assert done == before.keys()
    # Each is connected, before moves at its rim are left to the host, and worth a call.
    trimmed = {n for n, reason in found.host.items() if reason.startswith("it moves")}
    for part in found.parts:
        near = trimmed | set(part.nodes)
        links = [(s, n) for n in near for s in waits_for(nodes)[n] if s in near]
        reached = {part.nodes[0]}
        for _ in near:
            reached |= {b for a, b in links if a in reached} | {a for a, b in links if b in reached}
        assert reached >= set(part.nodes)
        steps = {n for group in part.steps for n in group}
        assert part.ops == sum(nodes[n][1].get("ops", 0) for n in part.nodes if n not in steps) >= max(least, 1)
        assert steps == {n for n in part.nodes if n in found.step_reasons}
        assert join or not steps
        for n in part.nodes:
            keywords = nodes[n][1]
            assert "refusal" not in keywords or (n in steps and keywords["may_be_step"])
    # Whatever no region has is told of.
    assert {n for n, p in enumerate(place) if p < 0} == found.host.keys()


@given(told(), st.integers(1, 4))
def test_steps_join_regions(nodes, least):
    """A step follows, over steps and moves, an op that computes, and is followed by one."""
    found = graph_of(nodes).find_parts(min_region_size=least)
    for part in found.parts:
        steps = {n for group in part.steps for n in group}
        computes = {n for n in part.nodes if n not in steps and nodes[n][1].get("ops", 0)}
        after, before = set(computes), set(computes)
        for n in part.nodes:
            after.update([n] if after & set(nodes[n][0]) else [])
        for n in reversed(part.nodes):
            before.update([n] if any(n in nodes[r][0] for r in before) else [])
        assert steps <= after & before
        alone = graph_of(nodes).find_parts(min_region_size=least, join=False)
        sides = [other for other in alone.parts if computes & set(other.nodes)]
        assert not steps or len(sides) >= 1


@given(told(), st.data())
def test_what_stays_inside(nodes, data):
    inside = data.draw(st.sets(st.integers(0, len(nodes) - 1), max_size=4))
    readers = {n for n, (sources, _) in enumerate(nodes) if inside & set(sources)}
    takes = data.draw(st.sets(st.sampled_from(sorted(readers)))) if readers else set()
    nodes = [(sources, {**keywords, "takes_inside": n in takes}) for n, (sources, keywords) in enumerate(nodes)]
    place = place_of(graph_of(nodes, inside).find_parts(min_region_size=1), len(nodes))
    for n in inside:
        if place[n] < 0 or "refusal" in nodes[n][1] or "ops" not in nodes[n][1]:
            continue
        own = [r for r in readers if n in nodes[r][0]]
        assert own
        assert all(r in takes and place[r] == place[n] for r in own)


def chain(*kinds):
    """Nodes that follow each other: L computes, M moves, S may be a step, H is the host's."""
    of = {
        "L": {"ops": 1},
        "M": {"at_rim": "leaves", "may_be_step": True},
        "S": {"refusal": REFUSAL, "may_be_step": True},
        "H": {"refusal": REFUSAL},
    }
    return [([n - 1] if n else [], of[kind]) for n, kind in enumerate(kinds)]


@pytest.mark.parametrize(
    ("kinds", "least", "parts"),
    [
        ("LLHLL", 1, [[0, 1], [3, 4]]),
        ("LLSLL", 1, [[0, 1, 2, 3, 4]]),
        ("LLSLL", 3, []),  # neither side is worth a region
        ("LSSL", 1, [[0, 1, 2, 3]]),
        ("LSSSL", 1, [[0], [4]]),  # the host would do more than the region
        ("LLSMSLL", 1, [[0, 1, 2, 3, 4, 5, 6]]),
        ("SLLS", 1, [[1, 2]]),
        ("SSS", 1, []),
        ("LSSSL", 3, []),
        ("HMH", 1, []),
        ("MLLM", 1, [[0, 1, 2]]),
        ("LLHLLHL", 2, [[0, 1], [3, 4]]),
    ],
)
def test_chains(kinds, least, parts):
    found = graph_of(chain(*kinds)).find_parts(min_region_size=least)
    assert [part.nodes for part in found.parts] == parts


def test_moves_between_steps_are_parts_of_these():
    found = graph_of(chain(*"LLSMSLL")).find_parts()
    assert [part.steps for part in found.parts] == [[[2, 3, 4]]]
    assert found.step_reasons == {2: REFUSAL, 3: "it lies between steps", 4: REFUSAL}


def test_candidates_that_lie_on_no_way_do_not_count():
    """A long chain of the host's beside the region does not keep a step out of it."""
    nodes = chain(*"LLSLL")
    nodes += [([2 if n == 5 else n - 1], {"refusal": REFUSAL, "may_be_step": True}) for n in range(5, 12)]
    assert [part.nodes for part in graph_of(nodes).find_parts().parts] == [[0, 1, 2, 3, 4]]


def test_an_effect_is_wanted():
    """What only an op with an effect reads is computed."""
    nodes = [*chain(*"LL"), ([1], {"refusal": REFUSAL, "has_effect": True})]
    graph = OpGraph()
    values = [graph.add_value() for _ in nodes]
    for n, (sources, keywords) in enumerate(nodes):
        graph.add_node("op", sources, [values[n]] if n < 2 else [], **keywords)
    found = graph.find_parts(min_region_size=2)
    assert [(part.nodes, part.ops) for part in found.parts] == [([0, 1], 2)]


def test_what_dequantizes_goes_with_its_readers():
    """Bytes cross the border: a region that waits for the host's op takes the DQ that lies before it."""
    dequantize = {"role": "dequantize", "with_readers": True}
    nodes = [([], {"ops": 1}), ([0], {"refusal": REFUSAL}), ([0], dequantize), ([1, 2], {"ops": 1})]
    assert [part.nodes for part in graph_of(nodes).find_parts().parts] == [[0], [2, 3]]
    nodes[2][1]["with_readers"] = False
    assert [part.nodes for part in graph_of(nodes).find_parts().parts] == [[0, 2], [3]]


def test_a_clamp_stays_with_its_op():
    kinds = [("dequantize", ""), ("none", REFUSAL), ("clamp", ""), ("quantize", ""), ("dequantize", ""), ("none", "")]
    nodes = [([n - 1] if n else [], {"role": role, "refusal": no, "ops": 1}) for n, (role, no) in enumerate(kinds)]
    found = graph_of(nodes).find_parts()
    assert [part.nodes for part in found.parts] == [[4, 5]]
    assert found.host[2] == "the op before it stays with the host"


def test_cuts_of_a_recurrence():
    """Each step of it waits for all before: what is told is bounded."""
    nodes = []
    for step in range(2000):
        last = [3 * step - 2] if step else []
        nodes += [([], {"ops": 1}), ([3 * step, *last], {"refusal": REFUSAL}), ([3 * step + 1], {"ops": 1})]
    found = graph_of(nodes).find_parts()
    assert len(found.parts) == 4000
    assert 2000 <= len(found.cuts) < 100_000


def test_cuts():
    found = graph_of(chain(*"LHHLHL")).find_parts()
    assert found.cuts == [(0, 1, [1, 2]), (1, 2, [4])]


def test_quantized_units():
    """Where the host computes DQ, op and Q as one, a region has all of them or none."""
    kinds = [
        ("dequantize", ""),
        ("none", ""),
        ("quantize", ""),
        ("dequantize", ""),
        ("none", REFUSAL),
        ("quantize", ""),
    ]
    nodes = [([n - 1] if n else [], {"role": role, "refusal": no, "ops": 1}) for n, (role, no) in enumerate(kinds)]
    found = graph_of(nodes).find_parts()
    assert [part.nodes for part in found.parts] == [[0, 1, 2]]
    assert found.host == {
        3: "what reads it stays with the host",
        4: REFUSAL,
        5: "what it quantizes stays with the host",
    }


@pytest.mark.parametrize("kinds", ["L", "LS", "LH", "LLM", "LSMS", "LLLLSMSHH"])
def test_large_graphs(kinds):
    """In time that grows with the graph; its square would be minutes."""
    count = 200_000 // len(kinds)
    found = graph_of(chain(*(kinds * count))).find_parts()
    assert sum(part.ops for part in found.parts) == count * kinds.count("L")


@pytest.mark.parametrize(
    ("inputs", "outputs", "more", "message"),
    [
        ([7], [0], {}, "no such value"),
        ([], [-2], {}, "no such value"),
        ([], [0], {"after": [0]}, "comes later"),
        ([0], [0], {}, "made or read before"),
        ([], [0], {"at_rim": "goes"}, "at_rim is 'goes'"),
        ([], [0], {"role": "q"}, "role is 'q'"),
    ],
)
def test_bad_graphs(inputs, outputs, more, message):
    graph = OpGraph()
    graph.add_value()

    def find():
        graph.add_node("op", inputs, outputs, **more)
        graph.find_parts()

    with pytest.raises(softneuro.Error, match=message):
        find()
