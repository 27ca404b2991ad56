class C(CodeNode):
    def run(self, state, config):
        return __builtins__
