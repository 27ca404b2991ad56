async def orcheo_workflow() -> 'StateGraph':
    graph = StateGraph()
    graph.add_node('a', SetVariableNode(variables={}))
    graph.add_edge(START, 'a')
    return graph
