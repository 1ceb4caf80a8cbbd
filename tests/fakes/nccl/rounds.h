// Calls of all ranks of a fake NCCL, which the last rank makes for all in host memory.
#pragma once

#include <cstddef>
#include <map>

namespace fake_nccl {

enum class Kind {
  allreduce,
  broadcast,
  reduce,
  allgather,
  reducescatter,
  alltoall,
  gather,
  scatter
};

struct Part {
  Kind kind;
  const char* send;
  char* receive;
  size_t count;
  int type, op, root;
  double scale;
};
/// One call of all ranks.
struct Round {
  std::map<int, Part> parts;
  bool done = false;
};

/// Of an element, by NCCL's number of its type.
size_t bytes_of(int type);
/// A number of a type that tests reduce here; others are only moved.
double load(int type, const char* at);
/// Gives all ranks of a round, which have all come, what they get.
void finish(Round& round);

}  // namespace fake_nccl
