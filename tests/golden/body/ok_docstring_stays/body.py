class C(CodeNode):
    def run(self, state, config):
        """doc
           more"""
        return 1
