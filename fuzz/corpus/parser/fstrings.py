f'{x}{y!r}{z:>10}{w!s:{a}.{b}} {{}} {v=} {u = !r:^20}'
f"""{
  x  # comment
}"""
f'{f"{f'{1}'}"}' 'tail' rf'\d{x}'
f'{ {1: 2}[1] } {(lambda: 1)()} {x:%H:%M}'
