class S(BaseModel):
    pass
