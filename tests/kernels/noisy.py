"""The front end prints what NOISE names: much, binary, or text that reads like a verdict."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def make(noise):
    import os

    if noise == "ten megabytes":
        for _ in range(160):
            os.write(1, b"x" * 65535 + b"\n")
            os.write(2, b"y" * 65535 + b"\n")
    elif noise == "binary":
        os.write(1, bytes(range(256)))
        os.write(2, b"\xff\xfe\x00\x80\x1b[31m\n")
    elif noise == "closed":
        os.close(1)
    elif noise == "like an abort":
        os.write(2, b"LLVM ERROR: this is only text\nSegmentation fault (core dumped)\n")
    elif noise == "like an error":
        os.write(2, b"kernels/noisy.py:35:4: error: this is only text\n")
    elif noise == "like a verdict":
        os.write(1, b'{"status": 10, "outcome": "REJECTED"}\n')
    return 1


@gluon.jit
def add(x, NOISE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, 256, layout=layout)
    gl.store(x + i, gl.load(x + i) + make(NOISE))
