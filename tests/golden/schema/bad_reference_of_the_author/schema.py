class Other(BaseModel):
    a: int

class S(BaseModel):
    x: int = Field(json_schema_extra={"$ref": "#/$defs/Other"})
