class C(CodeNode):
    def run(self, state, config):
        _x = 1
        return _x
