class C(CodeNode):
    def run(self, state, config):
        try:
            pass
        except FileNotFoundError:
            pass
        return 1
