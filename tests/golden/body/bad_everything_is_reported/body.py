class C(CodeNode):
    def run(self, state, config):
        x = print
        y = self.nope
        import os
        z = state.__dict__
        match x:
            case 1: pass
