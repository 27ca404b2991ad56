class C(CodeNode):
    def run(self, state, config):
        __x = 1
        return 1
