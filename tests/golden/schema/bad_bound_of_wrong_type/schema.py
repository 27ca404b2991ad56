class S(BaseModel):
    x: int = Field(ge="a")
