class C(CodeNode):
    def run(self, state, config):
        class Book:
            def title(self):
                return "t"
        return {"t": Book().title()}
