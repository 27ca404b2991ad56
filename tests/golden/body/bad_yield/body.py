class C(CodeNode):
    def run(self, state, config):
        yield 1
        return 1
