class S(BaseModel):
    x: Literal[y]
