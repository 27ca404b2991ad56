class C(CodeNode):
    def run(self, state: open, config):
        return 1
