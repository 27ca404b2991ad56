if a:
    b = """x
yz"""
    c\
  = 1de = f"""
{x=}"""