class C(CodeNode):
    def run(self, state, config):
        def f(self):
            return self.other
        return f
