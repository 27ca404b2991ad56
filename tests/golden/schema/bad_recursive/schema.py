class S(BaseModel):
    x: S
