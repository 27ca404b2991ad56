class C(CodeNode):
    async def run(self, state, config):
        return [x async for x in state]
