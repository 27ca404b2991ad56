class C(CodeNode):
    async def run(self, state, config):
        async for x in state: pass
        return 1
