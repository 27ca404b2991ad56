class C(CodeNode):
    def run(self, state, config):
        # lost
        x = 1
        # kept
        return x
        # lost
