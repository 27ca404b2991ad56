def orcheo_workflow():
    g = StateGraph()
    return g
def orcheo_workflow():
    g = StateGraph()
    return g
def orcheo_workflow():
    g = StateGraph()
    return g
