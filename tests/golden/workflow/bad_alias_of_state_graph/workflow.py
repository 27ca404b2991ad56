from orcheo.graph import StateGraph as SG


def orcheo_workflow():
    graph = SG()
    graph.add_node('a', SetVariableNode(variables={}))
    return graph
