class C(CodeNode):
    def run(self, state, config):
        x = 1
  # left
        return x
