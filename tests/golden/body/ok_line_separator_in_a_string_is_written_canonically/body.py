class C(CodeNode):
    def run(self, state, config):
        x = "a b"
        return {"x": x}
