class C(CodeNode):
    def run(self, state, config):
        def f():
            from os import path
        return {}
