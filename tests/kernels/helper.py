"""What `with_helper` imports."""

from triton.experimental import gluon


@gluon.jit
def twice(value):
    return value * 2
