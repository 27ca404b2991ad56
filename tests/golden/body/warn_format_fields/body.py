class C(CodeNode):
    def run(self, state, config):
        return {"a": "{0.x} {1[k]}".format(1, 2), "b": "{:,.2f}".format(1.5), "c": f"{1.5:,.2f}", "d": "{:,}".format(5)}
