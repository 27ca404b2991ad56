# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

# Stands alone.

# Stands above the function.

def work(state: State) -> dict:
    """What it does."""
    # about the sum
    total  =  1+1

    # the result
    return {
        "node_results": {"sum": total},  # at the end
    }


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
