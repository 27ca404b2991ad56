class S(BaseModel):
    a: int = Field(3)
    b: int = Field(default=4)
    c: int = Field()
    d: int = Field(None)
