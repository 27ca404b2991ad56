class C(CodeNode):
    def run(self, state, config):
        return {"x": f"{(lambda: 1)()}"}
