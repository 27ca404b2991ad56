a or b or c and not d and e
not not a
a < b <= c != d is not e not in f in g is h == i > j >= k
a | b ^ c & d << e >> f + g - h * i / j // k % l @ m
-a ** -b ** c, +a, ~a, - - a, (-a) ** b, await_ ** 2
a if b else c if d else e
(a if b else c) if d else e
lambda: 0, lambda x: x, lambda x, y=1, *a, z, w=2, **k: (x, y), lambda *, a: a, lambda a, /, b: 0, lambda a, b=1, /, c=2: 0, lambda *a: a, lambda **k: k, lambda x,: x
(a := 1), [b := 2, c], f(d := 3), {e := 4}, a[f := 5], (g := 6, h)
(), (a,), (a, b), (a, b,), (*a,), (*a, *b), a, *b
[], [a], [a, b,], [*a, b], {a}, {a, b,}, {*a, *b}, {}, {a: b}, {a: b, c: d,}, {**a}, {**a, b: c, **d}
[x for x in y], [x for x in y if z if w for v in u], {x for x in y}, {x: y for x, y in z}, (x for x in y)
[x async for x in y], [(x, y) for x, in z], [x for *a, b in c], [x for x.y in z], [x for x[0] in z], [x for (x) in z], [x for [x] in z]
f(), f(a), f(a,), f(a, b), f(*a), f(**a), f(a, *b, c=d, *e, **g), f(a=1, b=2), f(x for x in y), f((x for x in y), z), f(a)(b)[c].d, f(*a or b), f(a := 1, b=(c))
a[b], a[b, c], a[b,], a[:], a[b:], a[:c], a[b:c], a[::], a[b:c:d], a[:, b:c], a[*b], a[*b, c], a[b, *c], a[()], a[b:c, d], a[lambda: 0]
a.b.c, a . b, (a).b, 1 .real, 1.0.real, 'a'.b, [].a, {}.a, ().a, (a.b)()
((((a)))), (yield), (yield a), (yield a, b), (yield from c), (yield *a, b)
(a
 + b
 # comment
 * c), a \
 + b
print, exec, match, case, type, _
match(x), match[x], match * a, match - a, match.a, match, type, case(x), type(x), _ + 1, [match, case]
𝔘𝔫𝔦𝔠𝔬𝔡𝔢, ﬁ, ªº, é, 名前, x·
