class C(CodeNode):
    def run(self, state, config):
        text = state["text"]
        words = text.split()
        lines: list = text.splitlines()
        if (parts := text.rsplit("-")):
            parts = parts[1:]
        return {
            "a": text.split()[::-1],
            "b": words[::2],
            "c": lines[::-1],
            "d": parts[::-1],
            "e": ([1] + words)[::-1],
            "f": (words * 2)[::2],
            "g": words[1:][::-1],
            "h": words.copy()[::-1],
            "i": (words if lines else [])[::-1],
            "j": list(range(10)[::2]),
        }
