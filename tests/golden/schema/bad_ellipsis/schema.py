class S(BaseModel):
    x: int = Field(...)
