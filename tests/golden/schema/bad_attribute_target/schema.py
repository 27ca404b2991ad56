class S(BaseModel):
    x.y: int = 3
