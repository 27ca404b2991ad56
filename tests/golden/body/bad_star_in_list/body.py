class C(CodeNode):
    def run(self, state, config):
        return [*state, 1]
