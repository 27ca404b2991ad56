def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("ask", DeepAgentNode(name="ask", ai_model="some-model"))
    graph.add_node("tell", TelegramSendDocumentNode(name="tell", token="t"))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tell")
    return graph
