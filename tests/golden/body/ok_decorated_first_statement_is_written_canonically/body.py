class C(CodeNode):
    def run(self, state, config):
        @staticmethod
        def f():
            return 1
        return {"f": f()}
