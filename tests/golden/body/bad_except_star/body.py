class C(CodeNode):
    def run(self, state, config):
        try:
            pass
        except* ValueError:
            pass
        return 1
