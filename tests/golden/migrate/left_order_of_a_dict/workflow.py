# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State


def work(state: State) -> dict:
    seen = {}
    for word in state["inputs"]["words"]:
        seen[word] = seen.get(word, 0) + 1
    lines = [f"{word}: {count}" for word, count in seen.items()]
    most = max(seen, key=lambda w: seen[w])
    best = max(seen, key=lambda w: (seen[w], w))
    text = f"{seen}" + "".join([word for word in {"b": 1, "a": 2}]) + "".join(dict(seen))
    return {"node_results": {"work": lines, "text": text, "sorted": sorted(seen), "most": most, "best": best}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
