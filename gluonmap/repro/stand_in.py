"""Stand-ins for a GPU and its tensors during a compile. Copied unchanged into every script.

Nothing here imports anything at the top: in a script a name of the module can change what Triton makes of a kernel.
"""


def repro_pretend(backend, arch, warp_size, variables):
    """Make an absent GPU the active one: for a compile, a driver that knows its target is enough."""
    import os
    import sys
    from types import SimpleNamespace

    def leave(*error):
        """Exit with 125: Python's own status of an error is 1, which here means that the kernel fails as recorded."""
        sys.__excepthook__(*error)
        sys.stderr.flush()
        os._exit(125)

    sys.excepthook = leave
    os.environ |= variables

    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    if backend == "hip":
        from triton.backends.amd.compiler import HIPBackend

        # Triton 3.6 asks torch for a tensor's size; the stand-in knows its own.
        HIPBackend.is_within_2gb = staticmethod(lambda tensor: tensor.ptr_range() < 2**31)
    target = GPUTarget(backend, arch, warp_size)
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: target,
            get_current_device=lambda: 0,
            get_current_stream=lambda device=0: 0,
            get_active_torch_device=lambda: "cpu",
            get_device_interface=lambda: None,
            map_python_to_cpp_type=lambda ty: ty,
        )
    )


class ReproDtype(str):
    """Name of a dtype that prints like the dtype of a tensor."""

    def __str__(self):
        return "torch." + str.__str__(self)

    @property
    def is_floating_point(self):
        return self.startswith(("float", "bfloat"))


class ReproTensor:
    """The part of a tensor that a compile reads: a type, an alignment, a size below 2 GB."""

    def __init__(self, dtype, address=0, shape=(1 << 20,)):
        self.dtype, self.address, self.shape = ReproDtype(dtype), address, shape
        self.ndim = len(shape)

    def data_ptr(self):
        return self.address

    def ptr_range(self):
        return 1 << 20

    def stride(self, dim=None):
        return (1,) * self.ndim if dim is None else 1

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]
