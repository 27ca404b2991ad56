class C(CodeNode):
	def run(self, state, config):
		if state:
			return 1
		return 2
