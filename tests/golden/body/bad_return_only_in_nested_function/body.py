class C(CodeNode):
    def run(self, state, config):
        def f():
            return 1
