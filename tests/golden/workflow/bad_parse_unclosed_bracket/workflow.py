def orcheo_workflow():
    graph = StateGraph(
