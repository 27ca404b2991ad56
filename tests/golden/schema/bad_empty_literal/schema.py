class S(BaseModel):
    x: Literal[()]
