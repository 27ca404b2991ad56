class A[T](B, metaclass=C, *d, **e):
    x: int = 1
    (y): str
    z.w: float

    def m(self): return self.x[1:2, ::3, ...]

type X[T] = list[T]
