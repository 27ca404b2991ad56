class C(CodeNode):
    def run(self, state, config):
        class A:
            return 1
