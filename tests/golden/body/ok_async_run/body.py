class C(CodeNode):
    async def run(self, state, config):
        return 1
