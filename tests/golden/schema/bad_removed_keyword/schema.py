class S(BaseModel):
    x: int = Field(const=1)
