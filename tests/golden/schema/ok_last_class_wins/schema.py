class S(BaseModel):
    old: str

class S(BaseModel):
    new: int
