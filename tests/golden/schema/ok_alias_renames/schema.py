class S(BaseModel):
    a: int = Field(alias="first name")
    b: int = Field(validation_alias="v", alias="w")
    c: int = Field(serialization_alias="s")
    d: int = Field(alias="same")
    e: int = Field(alias="same")
