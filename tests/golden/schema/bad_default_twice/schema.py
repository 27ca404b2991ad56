class S(BaseModel):
    x: int = Field(1, default=2)
