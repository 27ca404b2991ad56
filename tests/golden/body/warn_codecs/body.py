class C(CodeNode):
    def run(self, state, config):
        return {"a": state["x"].encode("latin-1"), "b": state["y"].encode("utf-8")}
