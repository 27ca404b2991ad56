class C(CodeNode):
    def run(self, state, config):
        import os
        return {}
