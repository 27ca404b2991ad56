class C(CodeNode):
    def run(self, state, config):
        format = "x"
        return {"f": format}
