class S(BaseModel):
    a: str = Field(min_length=1, max_length=3, pattern="^a")
    b: list[int] = Field(min_length=1, max_length=3)
    c: dict[str, int] = Field(min_length=1)
    d: str | None = Field(min_length=2)
    e: str | int | None = Field(ge=2)
