class S(BaseModel):
    x: Optional[int]
