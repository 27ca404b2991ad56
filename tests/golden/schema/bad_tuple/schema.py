class S(BaseModel):
    x: tuple[int, str]
