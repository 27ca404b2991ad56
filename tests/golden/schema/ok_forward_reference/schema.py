class S(BaseModel):
    later: Later

class Later(BaseModel):
    inner: Other | None = None

class Other(BaseModel):
    a: int

