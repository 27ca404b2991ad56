class C(CodeNode):
    def run(self, state, config):
        def f[T](x: T):
            return x
        return f(1)
