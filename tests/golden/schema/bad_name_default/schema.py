class S(BaseModel):
    x: int = y
