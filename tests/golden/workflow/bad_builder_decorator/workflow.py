@d
def orcheo_workflow():
    g = StateGraph()
    return g
