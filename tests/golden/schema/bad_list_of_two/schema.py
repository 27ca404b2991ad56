class S(BaseModel):
    x: list[int, str]
