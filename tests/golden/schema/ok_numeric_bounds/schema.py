class S(BaseModel):
    a: int = Field(ge=1, le=5)
    b: float = Field(gt=0, lt=1.5)
    c: int = Field(multiple_of=2)
    d: str = Field(ge=1)
