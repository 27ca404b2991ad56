class C(CodeNode):
    def run(self, state, config):
        print(state)
        return 1
