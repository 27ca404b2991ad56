class C(CodeNode):
    def run(self, state, config):
        class A(metaclass=type):
            pass
        return {}
