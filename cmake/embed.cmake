# SPDX-License-Identifier: Apache-2.0
# Appends to the variable `text` the C++ that takes a file's bytes into the binary, between
# <symbol>_begin and <symbol>_end. The source that it is put into depends on the file.
function(caisson_bytes symbol path text)
  string(APPEND ${text}
    "asm(\".section .rodata\\n.global ${symbol}_begin\\n${symbol}_begin:\\n.incbin \\\"${path}\\\"\\n\"\n"
    "    \".global ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n.previous\\n\");\n"
    "extern \"C\" const char ${symbol}_begin[];\nextern \"C\" const char ${symbol}_end[];\n")
  set(${text} "${${text}}" PARENT_SCOPE)
endfunction()
