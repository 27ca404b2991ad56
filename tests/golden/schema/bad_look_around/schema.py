class S(BaseModel):
    x: str | None = Field(pattern="(?=a)", default=None)
