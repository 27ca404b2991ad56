class S(BaseModel):
    x: Union[int, str]
