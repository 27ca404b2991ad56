class C(CodeNode):
    def run(self, state, config):
        a = sum(state, start=1)
        b = list(zip(state, state, strict=True))
        c = int("1", base=2)
        d = iter(len, 1)
        return 1
