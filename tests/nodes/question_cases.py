# SPDX-License-Identifier: Apache-2.0
"""Cases for the node that asks. The run is interrupted and goes on with the answer, as often as it asks; what it asks is
compared beside what comes of it. A case is (config, inputs, state, answers)."""

from cases_of_values import TEXTS, VALUES

# The peer takes null and an empty object for no answer at all, and its checkpoints hold no larger integers.
VALUES = [value for value in VALUES if value not in (None, {}) and not (isinstance(value, int) and abs(value) >= 2**63)]
SHAPES = [{"message": " m "}, {"text": "t"}, {"content": 5}, {"message": "", "text": "t"}, {"message": None, "content": "c"},
          {"message": {"text": {"content": " deep "}}}, {"message": []}, {"other": "x"}, {"message": True}, {"text": 1.5},
          {"message": "  ", "text": {}, "content": False}, ["message"]]


def human_input():
    cases = [({}, {}, {}, [answer]) for answer in [*VALUES, *TEXTS, *SHAPES]]
    cases += [({"prompt": text, "kind": text}, {}, {}, ["yes"]) for text in TEXTS]
    cases += [({"expected": value}, {}, {}, ["yes"]) for value in [*VALUES, *SHAPES]]
    cases += [({"prompt": "Send {{inputs.v}}?", "expected": {"like": "{{inputs.v}}"}}, {"v": value}, {}, [value]) for value in VALUES]
    cases += [({name: 5}, {}, {}, ["yes"]) for name in ("prompt", "kind")]
    cases += [({name: None}, {}, {}, ["yes"]) for name in ("prompt", "kind")]
    return cases


def loop():
    """Asks in a loop until it is told to stop: each visit has its own question and answer."""
    nodes = [{"kind": "builtin", "id": "ask", "type": "HumanInputNode", "config": {"prompt": "again after {{ask.response}}?"}},
             {"kind": "builtin", "id": "side", "type": "SetVariableNode", "config": {"variables": {"seen": "{{ask.response}}"}}}]
    edges = [{"source": "__start__", "target": "ask"}, {"source": "side", "target": "ask"}]
    branches = [{"source": "ask", "path": "node_results.ask.response", "mapping": {"go": "side"}, "default": "__end__"}]
    return {"nodes": nodes, "edges": edges, "conditional_edges": branches, "entrypoint": "ask"}


def parallel():
    nodes = [{"kind": "builtin", "id": name, "type": "SetVariableNode", "config": {"variables": {"x": name}}} for name in "ad"]
    nodes += [{"kind": "builtin", "id": "b", "type": "HumanInputNode", "config": {"prompt": "b?"}}]
    edges = [{"source": "__start__", "target": "a"}, {"source": "a", "target": "b"}, {"source": "a", "target": "d"}]
    return {"nodes": nodes, "edges": edges, "conditional_edges": [], "entrypoint": "a"}


def inner():
    child = {"nodes": [{"kind": "builtin", "id": "x", "type": "SetVariableNode", "config": {"variables": {"v": 1}}},
                       {"kind": "builtin", "id": "ask", "type": "HumanInputNode", "config": {"prompt": "{{x.v}}?"}}],
             "edges": [{"source": "__start__", "target": "x"}, {"source": "x", "target": "ask"}], "conditional_edges": [], "entrypoint": "x"}
    nodes = [{"kind": "subgraph", "id": "outer", "graph": child},
             {"kind": "builtin", "id": "end", "type": "SetVariableNode", "config": {"variables": {"v": "{{ask.response}}"}}}]
    edges = [{"source": "__start__", "target": "outer"}, {"source": "outer", "target": "end"}]
    return {"nodes": nodes, "edges": edges, "conditional_edges": [], "entrypoint": "outer"}


GRAPHS = [(loop(), ["go", "go", "stop"]), (loop(), ["stop"]), (parallel(), [{"text": "t"}]), (inner(), ["yes"])]
