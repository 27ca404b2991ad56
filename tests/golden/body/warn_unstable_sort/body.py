class C(CodeNode):
    def run(self, state, config):
        rows = sorted(state["rows"], key=lambda r: r["n"])
        rows.sort(key=len)
        return {"rows": rows}
