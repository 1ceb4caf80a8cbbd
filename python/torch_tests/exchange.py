"""A program of ours for suites that load plans."""

# Each rank gets the other's input, and adds to it its own.
EXCHANGE = """
program exchange
collective allreduce(ranks: 2)
rank r in 0..2 {
  buffer got[1]
  channel ch = memory(1 - r)
  tb 0 {
    signal ch relaxed
    wait ch relaxed
    put ch.got[0] <- input[0]
    signal ch
    wait ch
    reduce output[0] <- input[0], got[0] op: sum
  }
}
"""
