def orcheo_workflow():
    graph = StateGraph(dict)
    graph.add_node('a', SetVariableNode(variables={}))
    graph.add_edge(START, 'a')
    return graph
