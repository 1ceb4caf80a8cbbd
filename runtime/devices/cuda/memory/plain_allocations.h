// Memory that the runtime allocates as cudaMalloc does, where GPUs have no virtual memory
// management. Processes that map it use its owner's allocation, by a legacy handle or by its
// address: freed by its owner, it would go under a call of theirs. So they hold a descriptor while
// they do, the write end of a pipe, and the allocation goes when no copy of that is left: the
// system closes those of processes that die.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "runtime/devices/cuda/driver/stream.h"
#include "runtime/support/fd.h"

namespace mscclc::cuda {

/// Those of the process. Thread-safe.
class PlainAllocations {
 public:
  static PlainAllocations& of_process();

  void add(abi::Address base);
  /// Is it one of these? Other memory is its owner's to keep.
  bool has(abi::Address base) const;
  /// For a process that maps it. Invalid: reported.
  Fd hold(abi::Address base, Diagnostics& diagnostics);
  /// Its owner needs it no more: it goes, now or when nothing holds it. Nothing where a child of
  /// fork() ends with what its parent has.
  void remove(const SharedContext& context, abi::Address base);
  /// Frees what is held no more, of a context: when a holder here has let go. Holders in other
  /// processes are noticed when memory of the context is removed the next time.
  void sweep(const SharedContext& context);

 private:
  struct Pipe {
    Fd read, write;
    bool is_held() const;
  };
  /// An allocation whose owner has gone.
  struct Left {
    SharedContext context;
    abi::Address base;
    Pipe pipe;
  };

  mutable std::mutex mutex_;
  std::map<abi::Address, Pipe> all_;
  std::vector<Left> left_;
};

}  // namespace mscclc::cuda
