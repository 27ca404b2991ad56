class S(BaseModel):
    a: int = 3
    b: int = "unchecked"
    c: int = None
    d: list[int] = (1, 2)
    e: dict[str, Any] = {"b": {"z": 1, "y": 2}, "a": 1}
