class C(CodeNode):
    def run(self, state, config):
        name = state["name"]
        return {"a": name.title(), "b": name.zfill(3), "c": name.removeprefix("x")}
