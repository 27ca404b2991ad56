class Query(BaseModel):
    text: str = Field(description="what to look up", min_length=1)
    limit: int = Field(default=5, ge=1, le=50)


class Reply(BaseModel):
    answer: str


def lookup():
    graph = StateGraph(State)
    graph.add_node("answer", SetVariableNode(name="answer", variables={"text": "{{inputs.text}}"}))
    graph.set_entry_point("answer")
    return graph


def orcheo_workflow():
    graph = StateGraph(State)
    graph.add_node("agent", AgentNode(name="agent", ai_model="m", response_format=Reply, workflow_tools=[
        WorkflowTool(name="lookup", description="d", graph=lookup(), args_schema=Query)]))
    graph.add_edge(START, "agent")
    return graph
