class C(CodeNode):
    def run(self, state, config):
        return {"x": f"{''.join(f'{i}' for i in state)}"}
