class C(CodeNode):
    def run(self, state, config):
        x = 1
        return x
