class C(CodeNode):
    def run(self, state, config):
        def f():
            yield 1
        return list(f())
