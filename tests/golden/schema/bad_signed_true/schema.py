class S(BaseModel):
    x: int = -True
