class S(BaseModel):
    x: str = Field(pattern="(")
