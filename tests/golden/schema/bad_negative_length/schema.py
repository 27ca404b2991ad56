class S(BaseModel):
    x: str = Field(min_length=-1)
