class C(CodeNode):
    def run(self, state, config):
        class Text:
            def rsplit(self):
                return "abc"

        words = state["text"].split()
        words = "-".join(words)
        sorted = str
        return {
            "a": words[::-1],
            "b": Text().rsplit()[::-1],
            "c": sorted("abc")[::-1],
            "d": (state["text"] if words else [])[::-1],
            "e": state["text"].partition("-")[::-1],
            "f": (state["a"] + state["b"])[::-1],
        }
