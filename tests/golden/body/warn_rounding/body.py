class C(CodeNode):
    def run(self, state, config):
        return {"x": round(state["x"], 2)}
