class S(BaseModel):
    a: Missing
    b: int = f()
    c: list
    _d: int
    e: str = Field(max_length="x")
