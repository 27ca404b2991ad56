class C(CodeNode):
    def run(self, state, config):
        s = list(state["s"])
        return {"a": s[::-1], "b": [1, 2][::2], "c": s[1:2]}
