class S(BaseModel):
    a: str
    b: int
    c: float
    d: bool
    e: Any
    f: None
