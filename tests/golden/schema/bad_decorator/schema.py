@frozen
class S(BaseModel):
    x: int
