class C(CodeNode):
    def run(self, state, config):
        print = 1
        return {}
