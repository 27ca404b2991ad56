class S(BaseModel):
    default: int = 3
    properties: int = Field(1, description="d")
