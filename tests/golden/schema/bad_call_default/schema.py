class S(BaseModel):
    x: int = other()
