class S(BaseModel):
    model_dump: int
