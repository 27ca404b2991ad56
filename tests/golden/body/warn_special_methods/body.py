class C(CodeNode):
    def run(self, state, config):
        class A:
            def __format__(self, spec):
                return ""
        return {"a": str(A())}
