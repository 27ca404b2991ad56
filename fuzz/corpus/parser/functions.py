@a.b(c)
@d
async def f[T: int, *Ts, **P](a, b: int = 1, /, c=2, *args: *Ts, d, e=3, **kw) -> None:
    '''doc'''
    global g
    await h(*a, **b, c=d)
    yield x
    return (yield from y)

f = lambda a, *b, c=1, **d: (a, b)
