class C(CodeNode):
    def run(self, state, config):
        return {"a": self.threshold}
