class S(BaseModel):
    x: int & str
