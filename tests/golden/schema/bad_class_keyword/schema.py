class S(BaseModel, frozen=True):
    x: int
