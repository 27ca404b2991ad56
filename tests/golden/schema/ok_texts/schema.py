class S(BaseModel):
    a: int = Field(title="T", description="d", examples=[1, {"b": 1, "a": 2}], deprecated=True)
    b: int = Field(deprecated=False)
    c: int = Field(deprecated="use a")
