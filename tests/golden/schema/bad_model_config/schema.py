class S(BaseModel):
    model_config: int
