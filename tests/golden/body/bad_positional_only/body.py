class C(CodeNode):
    def run(self, state, config):
        def f(a, /):
            return a
        return f(1)
