# SPDX-License-Identifier: Apache-2.0
"""Grades a pupil's answers: points per question in, a mark and a sentence out."""

from orcheo.graph import END, START, StateGraph
from orcheo.graph.state import State
from orcheo.nodes import CodeNode, SetVariableNode


class Grade(CodeNode):
    marks: list = [["A", 90], ["B", 75], ["C", 60], ["D", 45]]
    lowest: str = "E"

    def run(self, state, config):
        answers = state["inputs"]["answers"]
        if not answers:
            raise ValueError("there is no answer to grade")
        reached = sum([answer["points"] for answer in answers])
        possible = sum([answer["of"] for answer in answers])
        percent = 100 * reached // possible
        mark = self.lowest
        for name, least in self.marks:
            if percent >= least:
                mark = name
                break
        weakest = min(answers, key=lambda answer: answer["points"] / answer["of"])
        return {"mark": mark, "percent": percent, "weakest": weakest["question"]}


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("grade", Grade(name="grade", lowest="F"))
    graph.add_node(
        "letter",
        SetVariableNode(
            name="letter",
            variables={"text": "{{inputs.pupil}}: {{grade.mark}} ({{grade.percent}} %), look at {{grade.weakest}} again"},
        ),
    )
    graph.add_edge(START, "grade")
    graph.add_edge("grade", "letter")
    graph.add_edge("letter", END)
    return graph
