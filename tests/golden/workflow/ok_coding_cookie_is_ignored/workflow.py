# -*- coding: latin-1 -*-
def orcheo_workflow():
    graph = StateGraph()
    graph.add_node('é', SetVariableNode(variables={'k': 'ü😀'}))
    graph.add_edge(START, 'é')
    return graph
