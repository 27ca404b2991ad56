class S(BaseModel):
    x: Literal["[[token]]"]
