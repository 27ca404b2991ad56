x = "é"  # byte order mark
