# SPDX-License-Identifier: Apache-2.0
from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

graph = StateGraph(State)
graph.add_node("double", lambda s: {"node_results": {"double": s["inputs"]["n"] * 2}})
graph.add_edge(START, "double")
graph.add_conditional_edges("double", lambda s: s["node_results"]["double"] > 4, {True: END, False: "double"})
