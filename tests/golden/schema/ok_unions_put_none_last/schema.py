class S(BaseModel):
    a: None | int
    b: int | str | int
    c: None | None
    d: Any | None
