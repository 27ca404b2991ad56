class C(CodeNode):
    def run(self, state, config):
        a = 1
        del [a]
        return 1
