def orcheo_workflow[T: (int, str)]() -> T:
    graph = StateGraph()
    graph.add_node('a', SetVariableNode(variables={}))
    graph.add_edge(START, 'a')
    return graph
