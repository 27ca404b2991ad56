a = 0x1F, 0o17, 0b11, 1_000, 1e9, 1.5, .5, 2j, 18446744073709551616
b = 'it\'s', "q", '''three
lines''', r'\d', b'\x00', rb'\d', u'u'
c = '\N{BULLET}\u20ac\U0001f600\x41\101' 'joined'
d = None, True, False, ...
