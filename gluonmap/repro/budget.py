"""The check that a program fits the GPU, which a compile does not make. Copied unchanged into scripts about it."""


def repro_over_budget(program, target):
    """Return the limit that a compiled program exceeds, in words; "" if it fits."""
    known = program.metadata
    threads = known.num_warps * target["warp_size"]
    if known.shared < 0:
        return f"shared memory of {known.shared} bytes: the size wrapped"
    if known.shared > target["shared_bytes"]:
        return f"{known.shared:,} bytes of shared memory > {target['shared_bytes']:,}"
    if threads > target["threads"]:
        return f"{threads:,} threads > {target['threads']:,}"
    columns = getattr(known, "tmem_size", None) or 0
    if target["tensor_columns"] and columns > target["tensor_columns"]:
        return f"{columns} columns of tensor memory > {target['tensor_columns']}"
    if target["registers"]:
        registers = repro_registers(program.asm["cubin"])
        total = -(-registers // 8) * 8 * threads
        if total > target["registers"]:
            return f"{registers} registers x {threads} threads = {total:,} > {target['registers']:,}"
    return ""


def repro_registers(cubin):
    """Return the registers per thread, from the headers of the code sections: above the symbol's index in `sh_info`."""
    import struct

    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQII", cubin, start + i * size) for i in range(count)]
    return max(head[7] >> 24 for head in heads if cubin[heads[names][4] + head[0] :].startswith(b".text."))
