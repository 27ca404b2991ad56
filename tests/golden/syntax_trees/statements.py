a = 1; b = 2;
a = b = c, d = e
a, b = c; (a, b) = c; [a, b] = c; a, *b = c; *a, = b; (a), [b, (c, *d)] = e; a.b = c[d] = e; () = []; [] = (); *a.b, c = d
a: int; a: int = 1; (a): int; a.b: c; a[b]: c = d; (a.b): c; a: int = yield; a: int = *b, c
a += 1; a -= b, c; a *= 1; a /= 1; a //= 1; a %= 1; a @= 1; a &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1; a **= 1; a.b += yield; (a) += 1; a[b] += c
x = yield; x = yield a; x = yield from b; x = await_; x = *a, b
del a; del a, b; del (a, b), [c], d.e, f[g]; del (a); del (); del a,
assert a; assert a, b
raise; raise a; raise a from b
global a; global a, b
pass; break; continue
return; return a; return a, b; return *a, b; return (yield)
import a; import a.b.c; import a as b, c.d as e; import a . b
from a import b; from a.b import c as d, e; from . import a; from .. import a; from ... import a; from .... import a; from .a import b; from ...a.b import (c); from a import (b, c as d,); from a import *
nonlocal_ = 1
type X = int; type Y[T] = list[T]; type Z[T: int, *Ts, **P] = T; type _ = 1; type match = 2; type type = type
type = 1; type.x = 2; type[x] = 3; match = 1; match.x = 2; match: int; case = 1; _ = 2
print(a); print (a), b
def f():
    nonlocal a, b
    yield
    await b
