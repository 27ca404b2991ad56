def orcheo_workflow():
    inner = StateGraph(State)
    inner.add_node("merge", MergeNode(name="merge", mode="dict", items=["{{inputs}}", 1]))
    inner.add_edge(START, "merge")

    graph = StateGraph(State)
    graph.add_node("first", NoOpTaskNode(name="first"))
    graph.add_node("outer", inner)
    graph.add_edge(START, "first")
    graph.add_edge("first", "outer")
    return graph
