class C(CodeNode):
    def run(self, state, config):
        async def f(): pass
        return 1
