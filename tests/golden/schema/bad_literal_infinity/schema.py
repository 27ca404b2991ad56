class S(BaseModel):
    x: float = 1e999
