def orcheo_workflow(a):
    g = StateGraph()
    return g
