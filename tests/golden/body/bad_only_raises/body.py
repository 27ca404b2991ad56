class C(CodeNode):
    def run(self, state, config):
        raise ValueError("x")
