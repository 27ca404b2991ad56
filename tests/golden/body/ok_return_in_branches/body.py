class C(CodeNode):
    def run(self, state, config):
        if state:
            return 1
        for x in state:
            pass
