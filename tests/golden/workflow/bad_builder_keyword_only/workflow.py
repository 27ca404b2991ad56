def orcheo_workflow(*, a=1):
    g = StateGraph()
    return g
