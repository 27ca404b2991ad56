class C(CodeNode):
    def run(self, state, config):
        return state.__class__
