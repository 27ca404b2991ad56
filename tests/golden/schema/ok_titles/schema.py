class S(BaseModel):
    snake_case_name: int
    camelCase: int
    x1y: int
    URL: int
    a_b_2c: int
    from_: int
    état: int
