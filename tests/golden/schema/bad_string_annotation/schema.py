class S(BaseModel):
    x: "int"
