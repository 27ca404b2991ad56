class S(BaseModel):
    a: int = Field(exclude=True, frozen=True, strict=True, repr=False, init=True, kw_only=True)
    b: float = Field(allow_inf_nan=False)
    c: int = Field(max_digits=3, decimal_places=1)
