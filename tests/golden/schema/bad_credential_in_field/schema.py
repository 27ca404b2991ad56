class S(BaseModel):
    x: str = Field(description="[[token]]")
