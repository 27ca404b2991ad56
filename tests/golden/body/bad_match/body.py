class C(CodeNode):
    def run(self, state, config):
        match state:
            case 1:
                return 1
        return 2
