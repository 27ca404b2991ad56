class S(BaseModel):
    a: A

class A(BaseModel):
    b: list[B]

class B(BaseModel):
    a: A | None
