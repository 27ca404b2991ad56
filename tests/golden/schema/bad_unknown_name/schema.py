class S(BaseModel):
    x: Missing
