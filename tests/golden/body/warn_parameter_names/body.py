class C(CodeNode):
    def run(self, s, c):
        return {"x": s}
