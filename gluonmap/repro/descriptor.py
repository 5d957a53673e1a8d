"""A host tensor descriptor without a tensor. Copied unchanged into scripts whose kernel takes one."""


def repro_descriptor(tensor, block, backend):
    """Return a descriptor of blocks in a tensor of 4096 elements a side, in the default layout for its block."""
    from triton.experimental.gluon import language as gl

    shape = [4096] * len(block)
    strides = [4096**i for i in reversed(range(len(block)))]
    if backend == "hip":
        try:
            from triton.experimental.gluon.amd.cdna5 import TensorDescriptor
        except ImportError:
            from triton.experimental.gluon.amd.gfx1250 import TensorDescriptor
        layout = gl.PaddedSharedLayout.with_identity_for([[block[-1], 8]], block, [1, 0])
    else:
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

        names = {"float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
        element = getattr(gl, names.get(str.__str__(tensor.dtype), str.__str__(tensor.dtype)))
        layout = gl.NVMMASharedLayout.get_default_for(block, element)
    return TensorDescriptor(tensor, shape, strides, block, layout)
