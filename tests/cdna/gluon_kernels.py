"""Small Gluon kernels whose machine code the tests of gluonmap.cdna execute."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna4


@gluon.jit
def add_vectors(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, VEC: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([VEC], [64], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    inside = i < n
    total = gl.load(x_ptr + i, mask=inside, other=0) + gl.load(y_ptr + i, mask=inside, other=0)
    gl.store(out_ptr + i, total, mask=inside)


@gluon.jit
def softmax_rows(x_ptr, y_ptr, columns, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    c = gl.arange(0, BLOCK, layout=layout)
    offsets = gl.program_id(0) * columns + c
    x = gl.load(x_ptr + offsets, mask=c < columns, other=-float("inf"))
    e = gl.exp(x - gl.max(x, axis=0))
    gl.store(y_ptr + offsets, e / gl.sum(e, axis=0), mask=c < columns)


@gluon.jit
def subtract_from_column_sums(x_ptr, y_ptr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [32, 2], [1, 4], [1, 0])
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    c = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, layout))
    offsets = r[:, None] * COLUMNS + c[None, :]
    x = gl.load(x_ptr + offsets)
    gl.store(y_ptr + offsets, gl.convert_layout(gl.sum(x, axis=0)[None, :] - x, layout))


@gluon.jit
def transpose(x_ptr, y_ptr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    rows_first: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    columns_first: gl.constexpr = gl.BlockedLayout([4, 1], [8, 8], [1, 4], [0, 1])
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, rows_first))
    c = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, rows_first))
    x = gl.convert_layout(gl.load(x_ptr + r[:, None] * COLUMNS + c[None, :]), columns_first)
    r2 = gl.arange(0, ROWS, layout=gl.SliceLayout(1, columns_first))
    c2 = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, columns_first))
    gl.store(y_ptr + c2[None, :] * ROWS + r2[:, None], x)


@gluon.jit
def histogram(x_ptr, bins_ptr, sums_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    inside = i < n
    x = gl.load(x_ptr + i, mask=inside, other=0)
    gl.atomic_add(bins_ptr + (x & 15), x, mask=inside)
    gl.atomic_max(bins_ptr + 16 + (i & 3), x, mask=inside)
    cdna3.buffer_atomic_add(sums_ptr, x & 7, x.to(gl.float32), mask=inside)


@gluon.jit
def gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_a,
    stride_b,
    stride_c,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    VERSION: gl.constexpr,
    NONKDIM: gl.constexpr,
    INSTR_K: gl.constexpr,
    K_WIDTH: gl.constexpr,
    WAVES_M: gl.constexpr,
    WAVES_N: gl.constexpr,
    TRANSPOSED: gl.constexpr,
):
    """c = a @ b, both row-major, one LDS buffer each; b is read from LDS across its rows."""
    mfma: gl.constexpr = gl.amd.AMDMFMALayout(
        version=VERSION,
        instr_shape=[NONKDIM, NONKDIM, INSTR_K],
        transposed=TRANSPOSED,
        warps_per_cta=[WAVES_M, WAVES_N],
    )
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, K_WIDTH)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, K_WIDTH)
    WAVES: gl.constexpr = WAVES_M * WAVES_N
    load_a: gl.constexpr = gl.BlockedLayout([1, 8], [512 // BLOCK_K, BLOCK_K // 8], [WAVES, 1], [1, 0])
    load_b: gl.constexpr = gl.BlockedLayout([1, 8], [512 // BLOCK_N, BLOCK_N // 8], [WAVES, 1], [1, 0])
    m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, load_a))
    k_a = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, load_a))
    k_b = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, load_b))
    n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, load_b))
    a_lds = gl.allocate_shared_memory(
        a_ptr.dtype.element_ty, [BLOCK_M, BLOCK_K], gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    )
    b_lds = gl.allocate_shared_memory(
        b_ptr.dtype.element_ty, [BLOCK_K, BLOCK_N], gl.SwizzledSharedLayout(8, 1, 1, [1, 0])
    )
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mfma)
    for k in range(0, K, BLOCK_K):
        a_in = (m < M)[:, None] & (k_a + k < K)[None, :]
        b_in = (k_b + k < K)[:, None] & (n < N)[None, :]
        a_lds.store(cdna3.buffer_load(a_ptr, m[:, None] * stride_a + k_a[None, :] + k, mask=a_in, other=0.0))
        b_lds.store(cdna3.buffer_load(b_ptr, (k_b[:, None] + k) * stride_b + n[None, :], mask=b_in, other=0.0))
        acc = cdna3.mfma(a_lds.load(dot_a), b_lds.load(dot_b), acc)
    out_m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    out_n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    inside = (out_m < M)[:, None] & (out_n < N)[None, :]
    cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, out_m[:, None] * stride_c + out_n[None, :], mask=inside)


@gluon.jit
def gemm_scaled(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    c_ptr,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    NONKDIM: gl.constexpr,
    INSTR_K: gl.constexpr,
    A_FORMAT: gl.constexpr,
    B_FORMAT: gl.constexpr,
    K_WIDTH: gl.constexpr,
):
    """c = (a * scales) @ (b * scales), a: (M, K) row-major, b: (K, N) row-major; e2m1 packed along K."""
    PACKED_A: gl.constexpr = K // 2 if A_FORMAT == "e2m1" else K
    PACKED_B: gl.constexpr = K // 2 if B_FORMAT == "e2m1" else K
    mfma: gl.constexpr = gl.amd.AMDMFMALayout(
        version=4, instr_shape=[NONKDIM, NONKDIM, INSTR_K], transposed=True, warps_per_cta=[2, 2]
    )
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, K_WIDTH)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, K_WIDTH)
    scale_a: gl.constexpr = cdna4.get_mfma_scale_layout(dot_a, [M, K // 32])
    scale_b: gl.constexpr = cdna4.get_mfma_scale_layout(dot_b, [N, K // 32])
    m = gl.arange(0, M, layout=gl.SliceLayout(1, dot_a))
    k_a = gl.arange(0, PACKED_A, layout=gl.SliceLayout(0, dot_a))
    k_b = gl.arange(0, PACKED_B, layout=gl.SliceLayout(1, dot_b))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, dot_b))
    a = gl.load(a_ptr + m[:, None] * PACKED_A + k_a[None, :])
    b = gl.load(b_ptr + k_b[:, None] * N + n[None, :])
    sm = gl.arange(0, M, layout=gl.SliceLayout(1, scale_a))
    sn = gl.arange(0, N, layout=gl.SliceLayout(1, scale_b))
    ka = gl.arange(0, K // 32, layout=gl.SliceLayout(0, scale_a))
    kb = gl.arange(0, K // 32, layout=gl.SliceLayout(0, scale_b))
    a_scales = gl.load(a_scales_ptr + sm[:, None] * (K // 32) + ka[None, :])
    b_scales = gl.load(b_scales_ptr + sn[:, None] * (K // 32) + kb[None, :])
    acc = cdna4.mfma_scaled(a, a_scales, A_FORMAT, b, b_scales, B_FORMAT, gl.zeros([M, N], gl.float32, mfma))
    out_m = gl.arange(0, M, layout=gl.SliceLayout(1, mfma))
    out_n = gl.arange(0, N, layout=gl.SliceLayout(0, mfma))
    gl.store(c_ptr + out_m[:, None] * N + out_n[None, :], acc)


@gluon.jit
def copy_through_lds(x_ptr, y_ptr, TILES: gl.constexpr, WAIT: gl.constexpr, LAST: gl.constexpr):
    """y[t] = x[t].T for TILES tiles of 64 x 64 fp16, three in LDS: one is read while two are copied.

    WAIT is 1 and LAST 0 for a right kernel.
    """
    rows_first: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    columns_first: gl.constexpr = gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1])
    r = gl.arange(0, 64, layout=gl.SliceLayout(1, rows_first))
    c = gl.arange(0, 64, layout=gl.SliceLayout(0, rows_first))
    offsets = r[:, None] * 64 + c[None, :]
    r2 = gl.arange(0, 64, layout=gl.SliceLayout(1, columns_first))
    c2 = gl.arange(0, 64, layout=gl.SliceLayout(0, columns_first))
    out = c2[None, :] * 64 + r2[:, None]
    ring = gl.allocate_shared_memory(gl.float16, [3, 64, 64], gl.SwizzledSharedLayout(8, 1, 1, [1, 0]))
    for t in gl.static_range(2):
        cdna4.async_copy.buffer_load_to_shared(ring.index(t), x_ptr, offsets + t * 4096)
        cdna4.async_copy.commit_group()
    for t in gl.static_range(TILES):
        # All waves meet at the wait. After it every wave has read tile t - 1, and its place may be filled.
        if t + 1 < TILES:
            cdna4.async_copy.wait_group(WAIT)
        else:
            cdna4.async_copy.wait_group(LAST)
        if t + 2 < TILES:
            cdna4.async_copy.buffer_load_to_shared(ring.index((t + 2) % 3), x_ptr, offsets + (t + 2) * 4096)
            cdna4.async_copy.commit_group()
        tile = cdna4.async_copy.load_shared_relaxed(ring.index(t % 3), columns_first)
        cdna3.buffer_store(tile, y_ptr, out + t * 4096)


@gluon.jit
def through_lds(x_ptr, y_ptr, SHARED: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """y = x.T: rows are written to LDS of any layout, columns are read."""
    rows_first: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    columns_first: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, rows_first))
    c = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, rows_first))
    x = cdna3.buffer_load(x_ptr, r[:, None] * COLUMNS + c[None, :])
    lds = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [ROWS, COLUMNS], SHARED)
    lds.store(x)
    turned = lds.permute((1, 0)).load(columns_first)
    r2 = gl.arange(0, COLUMNS, layout=gl.SliceLayout(1, columns_first))
    c2 = gl.arange(0, ROWS, layout=gl.SliceLayout(0, columns_first))
    cdna3.buffer_store(turned, y_ptr, r2[:, None] * ROWS + c2[None, :])


@gluon.jit
def buffer_copy(x_ptr, y_ptr, n, LOAD: gl.constexpr, STORE: gl.constexpr):
    """y = x where an element's index is even, else 7, up to n."""
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [4], [0])
    i = gl.program_id(0) * 1024 + gl.arange(0, 1024, layout=layout)
    seven = gl.full([1024], 7, x_ptr.dtype.element_ty, layout)
    x = cdna3.buffer_load(x_ptr, i, mask=(i < n) & (i % 2 == 0), other=seven, cache=LOAD)
    cdna3.buffer_store(x, y_ptr, i, mask=i < n, cache=STORE)


@gluon.jit
def buffer_atomic(x_ptr, y_ptr, old_ptr, n, OP: gl.constexpr, CDNA4: gl.constexpr):
    """y[i] = OP(y[i], x[i]) up to n; the old values are stored too."""
    layout: gl.constexpr = gl.BlockedLayout([2], [64], [4], [0])
    i = gl.arange(0, 512, layout=layout)
    x = cdna3.buffer_load(x_ptr, i, mask=i < n)
    if OP == "max":
        old = cdna3.buffer_atomic_max(y_ptr, i, x, mask=i < n)
    elif OP == "min":
        old = cdna3.buffer_atomic_min(y_ptr, i, x, mask=i < n)
    elif OP == "and":
        old = cdna3.buffer_atomic_and(y_ptr, i, x, mask=i < n)
    elif OP == "or":
        old = cdna3.buffer_atomic_or(y_ptr, i, x, mask=i < n)
    elif OP == "xor":
        old = cdna3.buffer_atomic_xor(y_ptr, i, x, mask=i < n)
    elif OP == "xchg":
        old = cdna3.buffer_atomic_xchg(y_ptr, i, x, mask=i < n)
    elif CDNA4:
        old = cdna4.buffer_atomic_add(y_ptr, i, x, mask=i < n)
    else:
        old = cdna3.buffer_atomic_add(y_ptr, i, x, mask=i < n)
    cdna3.buffer_store(old, old_ptr, i, mask=i < n)


@gluon.jit
def copy_masked(x_ptr, y_ptr, ROWS_IN: gl.constexpr, SHARED: gl.constexpr, POINTERS: gl.constexpr):
    """y = x: (64, 64) float32 by an asynchronous copy, with 0 in the rows from ROWS_IN on."""
    rows_first: gl.constexpr = gl.BlockedLayout([1, 4], [4, 16], [4, 1], [1, 0])
    r = gl.arange(0, 64, layout=gl.SliceLayout(1, rows_first))
    c = gl.arange(0, 64, layout=gl.SliceLayout(0, rows_first))
    offsets = r[:, None] * 64 + c[None, :]
    inside = (r < ROWS_IN)[:, None] & (c < 64)[None, :]
    lds = gl.allocate_shared_memory(gl.float32, [64, 64], SHARED)
    zero = gl.zeros([64, 64], gl.float32, rows_first)
    if POINTERS:
        cdna4.async_copy.global_load_to_shared(lds, x_ptr + offsets, mask=inside, other=zero)
    else:
        cdna4.async_copy.buffer_load_to_shared(lds, x_ptr, offsets, mask=inside, other=zero)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    cdna3.buffer_store(lds.load(rows_first), y_ptr, offsets)


@gluon.jit
def product_of_doubles(a_ptr, b_ptr, c_ptr, K: gl.constexpr, VERSION: gl.constexpr):
    """c = a @ b, a: (32, K), b: (K, 32) float64."""
    mfma: gl.constexpr = gl.amd.AMDMFMALayout(
        version=VERSION, instr_shape=[16, 16, 4], transposed=False, warps_per_cta=[2, 2], element_bitwidth=64
    )
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, 1)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, 1)
    m = gl.arange(0, 32, layout=gl.SliceLayout(1, dot_a))
    k_a = gl.arange(0, K, layout=gl.SliceLayout(0, dot_a))
    k_b = gl.arange(0, K, layout=gl.SliceLayout(1, dot_b))
    n = gl.arange(0, 32, layout=gl.SliceLayout(0, dot_b))
    a = gl.load(a_ptr + m[:, None] * K + k_a[None, :])
    b = gl.load(b_ptr + k_b[:, None] * 32 + n[None, :])
    acc = cdna3.mfma(a, b, gl.zeros([32, 32], gl.float64, mfma))
    out_m = gl.arange(0, 32, layout=gl.SliceLayout(1, mfma))
    out_n = gl.arange(0, 32, layout=gl.SliceLayout(0, mfma))
    gl.store(c_ptr + out_m[:, None] * 32 + out_n[None, :], acc)
