class S(BaseModel):
    "nothing here"
