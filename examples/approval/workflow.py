"""A letter that a person approves before it counts as sent, and that is written again when they do not."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes.code import CodeNode
from orcheo.nodes.logic import HumanInputNode, SetVariableNode


class Write(CodeNode):
    name_of_reader = "{{inputs.name}}"

    def run(self, state, config):
        before = state["node_results"].get("write", {})
        remark = state["node_results"].get("ask", {}).get("response", "")
        text = "Dear %s, thank you for your letter." % self.name_of_reader
        if remark:
            text += " (%s)" % remark
        return {"text": text, "version": before.get("version", 0) + 1}


class Judge(CodeNode):
    answer = "{{ask.response}}"

    def run(self, state, config):
        return {"way": "send" if self.answer.lower() in ("yes", "ok") else "again"}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("write", Write(name="write"))
    graph.add_node("ask", HumanInputNode(name="ask", prompt="Send this? {{write.text}}"))
    graph.add_node("judge", Judge(name="judge"))
    graph.add_node("sent", SetVariableNode(name="sent", variables={"text": "{{write.text}}"}))
    graph.add_edge(START, "write")
    graph.add_edge("write", "ask")
    graph.add_edge("ask", "judge")
    graph.add_conditional_edges("judge", {
        "path": "node_results.judge.way",
        "mapping": {"send": "sent", "again": "write"},
    })
    graph.add_edge("sent", END)
    return graph
