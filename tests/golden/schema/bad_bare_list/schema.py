class S(BaseModel):
    x: list
