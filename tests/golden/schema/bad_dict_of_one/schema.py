class S(BaseModel):
    x: dict[str]
