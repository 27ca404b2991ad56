class S(BaseModel):
    x: int
    y: str
    x: float = 2.0
