# SPDX-License-Identifier: Apache-2.0
from orcheo.graph import StateGraph


class Work(CodeNode):
    def run(self, state, config):
        return {"a":1}   # as it was
def orcheo_workflow():
    g = StateGraph(State)
    g.add_node("work", Work(name="work"))
    g.set_entry_point("work")
    return g
