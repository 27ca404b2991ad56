class S(BaseModel):
    a: list[int]
    b: dict[str, Any]
    c: dict[str, list[int | None]]
    d: list[list[str]]
    e: dict[Literal["k"], int]
