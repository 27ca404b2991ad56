f'', f'a', F"b", f'{x}', f'a{x}b', f'{{', f'}}', f'a{{b{x}}}c', f'{{{x}}}'
f'{x!r}{x!s}{x!a}', f'{x:>10}', f'{x!r:^{width}}', f'{x:{a}{b}}', f'{x:a{b}c{d}e}', f'{x:}', f'{x!s:}'
f'{x=}', f'{x = }', f'{x=!s}', f'{x=:>5}', f'{x+1=!r:{w}}', f'{ x = !r }', f'{a["b"]=}'
f'{x,}', f'{*a, b}', f'{yield}', f'{(yield x)}', f'{(lambda x: 1)}', f'{x if y else z}', f'{x:=5}', f'{(x:=5)}'
f'{a["b"]}', f'{a['b']}', f'{f'{f'{x}'}'}', f"{'"'}", f'{"\n".join(a)}', f'{a!r}' 'b' f'{c}' "d"
f'\N{BULLET}{x}\N{DIGIT ONE}', f'\x41\{x}\n', rf'\n{x}\{y}\d', fR"\N{x}", f'\
{x}\
'
f'''a
{x}
  {y
   + z}
''', f"""{
    x  # a comment
    :>{
        w
    }
}"""
f'{x:\n}', rf'{x:\n}', f'{x!r:\x41}', f'{x
}', f'{x:d
}', f'''{x:
  d}'''
f'{a:{b:{c}}}', f'{3.4:10}', f'{x != y}', f'{x == y = }', f'{x:%H:%M}', f'{d["a":1]}', f'{x[1:2]:3}'
f'{x}' 'plain' f'', '' f'{x}' '', f'a' 'b', 'a' f'b' u'c', u'a' f'{b}', ('a' f'{b}'
 'c'), f'é{ñ}名{x}', f'{x:é{y}}'
f'{ {1: 2}[1] }', f'{ {x for x in y} }', f'{[x for x in y]!r}', f'{await_}', f'{-x}', f'{not x}'
