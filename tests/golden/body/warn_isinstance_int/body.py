class C(CodeNode):
    def run(self, state, config):
        return {"x": isinstance(state["x"], int), "y": isinstance(1, (int, bool)), "z": isinstance(1, int | str)}
