# SPDX-License-Identifier: Apache-2.0
"""Everything that a crash can fall into: a loop, code beside native nodes, waits, subgraphs, a question, messages."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, DelayNode, ForLoopNode, HumanInputNode, SetVariableNode


class Add(CodeNode):
    item = "{{each.current_item}}"

    def run(self, state, config):
        before = state["node_results"].get("add", {})
        return {"sum": before.get("sum", 0) + self.item, "count": before.get("count", 0) + 1}


class Reply(CodeNode):
    total = "{{add.sum}}"

    def run(self, state, config):
        return {"total": self.total, "messages": [{"role": "ai", "content": "total %d" % self.total}]}


class Side(CodeNode):
    def run(self, state, config):
        return {"letters": sorted(state["inputs"]["name"])}


def orcheo_workflow():
    graph = StateGraph(State)
    child = StateGraph(State)
    child.add_node("prepare", SetVariableNode(variables={"text": "Dear {{inputs.name}}"}))
    child.add_node("pause", DelayNode(duration_seconds=0.002))
    child.add_node("ask", HumanInputNode(prompt="Send it?"))
    child.add_node("note", SetVariableNode(variables={"said": "{{ask.response}}", "text": "{{prepare.text}}"}))
    child.add_edge(START, "prepare")
    child.add_edge("prepare", "pause")
    child.add_edge("pause", "ask")
    child.add_edge("ask", "note")
    graph.add_node("each", ForLoopNode(items="{{inputs.items}}"))
    graph.add_node("add", Add())
    graph.add_node("wait", DelayNode(duration_seconds=0.001))
    graph.add_node("reply", Reply())
    graph.add_node("side", Side())
    graph.add_node("outer", child)
    graph.add_node("end", SetVariableNode(variables={"assistant_message": "{{note.said}} to {{add.sum}}"}))
    graph.add_edge(START, "each")
    graph.add_conditional_edges("each", {"path": "node_results.each.done", "mapping": {"false": "add", "true": "wait"}})
    graph.add_edge("add", "each")
    graph.add_edge("wait", "reply")
    graph.add_edge("wait", "side")
    graph.add_edge("wait", "outer")
    graph.add_edge("outer", "end")
    graph.add_edge("end", END)
    return graph
