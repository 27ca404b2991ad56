class S(BaseModel):
    x: str = "[[token]]"
