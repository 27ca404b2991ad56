class S(BaseModel):
    x: Any = Field(strict=True)
