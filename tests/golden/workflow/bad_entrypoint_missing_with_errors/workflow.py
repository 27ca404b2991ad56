def build():
    g = StateGraph()
    g.add_node('a', Nope())
    g.add_edge(START, 'a')
    return g
