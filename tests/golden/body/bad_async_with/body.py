class C(CodeNode):
    async def run(self, state, config):
        async with state: pass
        return 1
