class Other(BaseModel):
    a: int

class S(BaseModel):
    a: Other = Field(description="what")
    b: Other = {"a": 1}
    c: Other = Field(title="Other")
