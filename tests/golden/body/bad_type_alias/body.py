class C(CodeNode):
    def run(self, state, config):
        type X = int
        return 1
