# SPDX-License-Identifier: Apache-2.0
import datetime
import json
import math
import os
import re

from langgraph.graph import END, START, StateGraph
from orcheo.graph.state import State

WORD = re.compile("a+")


def work(state: State) -> dict:
    now = datetime.datetime.now()
    now.replace(hour=0)
    match = WORD.match(state["inputs"]["text"])
    return {"node_results": {"work": [math.sqrt(2), json.loads("1"), match, os.environ["KEY"]]}}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_edge(START, "work")
builder.add_edge("work", END)
