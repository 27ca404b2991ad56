class T(BaseModel):
    x: int
