class S(BaseModel):
    x: int | 3
