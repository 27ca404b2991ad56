def orcheo_workflow(*a, **k):
    g = StateGraph()
    return g
