"""JAX's collectives over all GPUs of this process: XLA makes a communicator and a thread for each."""
import os

import jax
import jax.numpy as jnp
import numpy as np
from checks import COUNTS, Checks, arguments, values
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

TYPES = ["float32", "bfloat16", "float16", "float64", "int32", "int64", "int8", "uint8", "complex64"]


def by_ranks(mesh, body, out_specs=P("i")):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=out_specs,
                                 check_vma=False))


def equal(found, wanted):
    found = np.asarray(found)
    np.testing.assert_array_equal(found, np.asarray(wanted).astype(found.dtype).reshape(found.shape))


def collectives(check, mesh, n):
    """Each rank has a row of `every`, or as many rows as there are ranks."""
    for dtype in TYPES:
        for count in COUNTS[2:]:
            every = np.array([values(r, n * count) for r in range(n)])
            rows = every.reshape(n, n, count)
            x = jax.device_put(jnp.asarray(every, dtype), NamedSharding(mesh, P("i")))
            last_first = [(r, (r + 1) % n) for r in range(n)]
            cases = [
                ("psum", lambda v: lax.psum(v, "i"), np.tile(every.sum(0), n)),
                ("all_gather", lambda v: lax.all_gather(v[:, :count], "i", tiled=True),
                 np.tile(rows[:, 0].ravel(), n)),
                ("psum_scatter", lambda v: lax.psum_scatter(
                    v.reshape(n, count), "i", scatter_dimension=0, tiled=True), rows.sum(0)),
                ("all_to_all", lambda v: lax.all_to_all(v.reshape(n, count), "i", 0, 0, tiled=True),
                 rows.transpose(1, 0, 2)),
                ("ppermute", lambda v: lax.ppermute(v, "i", last_first), np.roll(every, 1, axis=0)),
            ]
            if dtype != "complex64":
                cases += [("pmax", lambda v: lax.pmax(v, "i"), np.tile(every.max(0), n)),
                          ("pmin", lambda v: lax.pmin(v, "i"), np.tile(every.min(0), n))]
            for name, body, wanted in cases:
                check(f"{name} {dtype} x {count}", lambda: equal(by_ranks(mesh, body)(x), wanted))


def replicated(check, mesh, n):
    """What programs write that name no collective: XLA finds the sums itself."""
    rows = np.arange(8 * n * 64, dtype=np.float32).reshape(8 * n, 64) % 5
    weights = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) % 3
    batch = jax.device_put(rows, NamedSharding(mesh, P("i")))
    whole = jax.device_put(weights, NamedSharding(mesh, P()))

    def loss(w, x):
        return jnp.sum((x @ w) ** 2)

    def step(_):
        gradient = jax.jit(jax.grad(loss), out_shardings=NamedSharding(mesh, P()))(whole, batch)
        wanted = 2 * rows.astype(np.float64).T @ (rows.astype(np.float64) @ weights)
        np.testing.assert_allclose(np.asarray(gradient), wanted, rtol=1e-5)
    check("a gradient of data in parts", lambda: step(0))

    def gathered():
        cut = jax.device_put(weights, NamedSharding(mesh, P(None, "i")))
        found = jax.jit(lambda x, w: x @ w, out_shardings=NamedSharding(mesh, P()))(batch, cut)
        equal(found, rows @ weights)
    check("a product of parts", gathered)


def repeated(check, mesh, n):
    """The same compiled program many times, each with the result of the one before."""
    def add(v):
        return lax.psum(v, "i") - (n - 1) * v  # with equal parts: the same again
    call = by_ranks(mesh, add)

    def run():
        x = jax.device_put(jnp.ones((n, 4096)), NamedSharding(mesh, P("i")))
        for _ in range(200):
            x = call(x)
        equal(x, np.ones((n, 4096)))
    check("200 calls of a program", run)


def main():
    options = arguments()
    jax.config.update("jax_enable_x64", True)
    n = options.ranks
    mesh = Mesh(np.array(jax.devices("cpu" if options.host else "gpu")[:n]), ("i",))
    print(f"JAX {jax.__version__}, {os.environ.get('XLA_FLAGS', '')}", flush=True)
    check = Checks(options.rank)
    collectives(check, mesh, n)
    replicated(check, mesh, n)
    repeated(check, mesh, n)
    check.end()


if __name__ == "__main__":
    main()
