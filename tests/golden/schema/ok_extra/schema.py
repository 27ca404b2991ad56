class S(BaseModel):
    a: int = Field(json_schema_extra={"z": 1, "format": "date"})
    b: int = Field(zzz=1, aaa="b")
    c: int = Field(json_schema_extra={"type": "string"})
