class S(BaseModel):
    _x: int
