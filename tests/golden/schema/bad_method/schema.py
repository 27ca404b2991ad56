class S(BaseModel):
    x: int
    def f(self): pass
