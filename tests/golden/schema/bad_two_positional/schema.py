class S(BaseModel):
    x: int = Field(1, 2)
