# SPDX-License-Identifier: Apache-2.0
"""Random graphs of native nodes: cycles, self edges, uneven diamonds, branches, subgraphs, several
writers of one field. The same seed gives the same graphs."""

from cases import builtin

KEYS = ["x", "y", "z"]


def value(random, ids):
    name = random.choice(ids)
    return random.choice([
        random.randrange(4), random.choice(["p", "q", "", "true"]), True, None, 1.0, [1], "{{inputs.n}}", "{{%s.x}}" % name,
        "{{%s}}" % name, "v{{%s.x}}{{inputs.n}}" % name, "{{node_results.%s.y}}" % name, {"k": "{{%s.index}}" % name},
    ])


def node(random, name, ids):
    kind = random.choice(["set"] * 5 + ["loop", "merge", "noop", "message", "field", "json"])
    if kind == "loop":
        return builtin(name, "ForLoopNode", {"items": list(range(random.randrange(4)))})
    if kind == "merge":
        return builtin(name, "MergeNode", {"items": [{"a": 1}, {"b": value(random, ids)}]})
    if kind == "noop":
        return builtin(name, "NoOpTaskNode", {})
    if kind == "json":
        return builtin(name, "JsonProcessingNode", {"operation": "stringify", "input_data": value(random, ids), "indent": None})
    if kind == "message":
        message = {"role": "user", "content": name, "id": random.choice(["m1", "m2", "m3"])}
        return builtin(name, "SetVariableNode", {"variables": {"messages": [message]}})
    if kind == "field":
        field = random.choice(["inputs", "assistant_message", "structured_response", "node_results"])
        content = {"n": random.randrange(3), "shared": value(random, ids)}
        return builtin(name, "SetVariableNode", {"variables": {field: content, "x": 1}})
    chosen = random.sample(KEYS, random.randrange(1, 3))
    return builtin(name, "SetVariableNode", {"variables": {key: value(random, ids) for key in chosen}})


def branch(random, source, ids, vertices):
    path = random.choice([f"node_results.{source}.x", f"node_results.{random.choice(ids)}.done", "inputs.n", "inputs",
                          f"node_results.{source}", "assistant_message", "messages", f"node_results.{source}.x.k", "zz"])
    keys = random.sample(["0", "1", "true", "false", "null", "p", "1.0", "[1]", "", "{'n': 1}", "v3"], random.randrange(1, 6))
    default = random.choice([None, *vertices]) if random.random() < 0.8 else None
    return {"source": source, "path": path, "mapping": {key: random.choice(vertices) for key in keys}, "default": default}


def graph(random, prefix="", depth=0):
    ids = [prefix + chr(97 + i) for i in range(random.randrange(1, 7))]
    random.shuffle(ids)
    nodes = []
    for name in ids:
        if depth < 2 and random.random() < 0.12:
            inner = "" if random.random() < 0.3 else name + "_"
            nodes.append({"kind": "subgraph", "id": name, "graph": graph(random, inner, depth + 1)})
        else:
            nodes.append(node(random, name, ids))
    vertices = ids + ["__end__"]
    edges = [{"source": random.choice(ids), "target": random.choice(vertices)} for _ in range(random.randrange(0, 9))]
    if random.random() < 0.3:
        edges += [{"source": "__start__", "target": random.choice(ids)} for _ in range(random.randrange(1, 3))]
    sources = random.sample(ids, min(len(ids), random.randrange(0, 3)))
    branches = [branch(random, source, ids, vertices) for source in sources]
    return {"schema_version": 1, "entrypoint": ids[0], "nodes": nodes, "edges": edges, "conditional_edges": branches}


def has_subgraph(ir):
    return any(spec["kind"] == "subgraph" for spec in ir["nodes"])


def request(random):
    return {"ir": graph(random), "inputs": {"n": random.randrange(4)}, "recursion_limit": random.randrange(2, 14)}
