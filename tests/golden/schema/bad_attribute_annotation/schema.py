class S(BaseModel):
    x: a.b
