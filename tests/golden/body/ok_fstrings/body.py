class C(CodeNode):
    def run(self, state, config):
        x = 1.5
        w = 8
        return {"a": f"{x:>{w}.1f} {x!r} {state['a:b']} {[i for i in (1, 2)]}"}
