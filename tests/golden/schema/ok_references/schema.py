class Other(BaseModel):
    a: int

class S(BaseModel):
    a: Other
    b: Other | None
    c: list[Other]
    d: dict[str, Other]
    e: Other | int
