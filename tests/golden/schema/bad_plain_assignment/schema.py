class S(BaseModel):
    x = 3
