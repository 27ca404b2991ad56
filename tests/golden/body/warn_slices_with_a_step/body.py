class C(CodeNode):
    def run(self, state, config):
        s = state["s"]
        return {"a": s[::-1]}
