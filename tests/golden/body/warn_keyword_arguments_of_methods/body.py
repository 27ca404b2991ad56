class C(CodeNode):
    def run(self, state, config):
        return {"a": state["x"].split(sep=",", maxsplit=1), "b": state["x"].encode(encoding="utf-8")}
