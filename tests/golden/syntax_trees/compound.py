if a: pass
if a: pass; b
if a:
    b
elif c:
    d
elif e: f
else:
    g
while a: b
else: c
for a in b: c
for a, b in c, d:
    e
else:
    f
for a, in b: c
for *a, b in c: d
for (a) in b: c
for a.b in c: d
for a[b] in *c, d: e
try: a
except: b
try:
    a
except A:
    b
except (B, C) as d:
    e
else:
    f
finally:
    g
try: a
finally: b
try: a
except* A: b
except* (B, C) as d: e
with a: b
with a as b: c
with a as b, c as d, e: f
with (a): b
with (a, b): c
with (a as b): c
with (a as b, c as d,): e
with (a, b) as c: d
with (a), b: c
with (a).b as c: d
with (a, b).c: d
with (yield a): b
with (a := b): c
with (a for a in b): c
with (*a, b): c
with (): a
with a as (b, c), d as [e], f as g.h, i as j[k]: l
with (a if b else c) as d: e
def f(): pass
def f(a, b: int, c=1, d: str = 2, *args: int, e, f: int = 3, **kw: dict) -> None: pass
def f(a, /): pass
def f(a, b=1, /, c=2, *, d): pass
def f(*, a, b=1): pass
def f(*args: *Ts): pass
def f(a,): pass
def f(*a,): pass
def f(**k,): pass
def f[T](): pass
def f[T: int, *Ts, **P](a: T) -> T: return a
def f[T: (int, str)](): pass
@a
@b.c(d)
@(e := f)
@x[0]
def g(): pass
async def f():
    async with a as b: pass
    async for x in y: pass
    else: z
    await a
    return [x async for x in y if await z]
@dec
async def g(): ...
class C: pass
class C(): pass
class C(A, B, metaclass=M, *args, **kw):
    """Doc."""

    x: int = 1

    def f(self): return self
class C[T](A[T]): pass
@dec
class D: a = 1; b = 2;

if a:
    if b:
        c
    else:
        d
# a comment at the end
    # and an indented one
else:
    e ; f
