// What the interface keeps for each thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/doors/c/handles.h"
#include "runtime/support/process/per_thread.h"

namespace mscclc::capi {

/// Texts that need memory, and one for when there is none.
struct LastError {
  std::string text;
  const char* fixed = "";
};

/// A call that a group has noted, with its own arrays.
struct Noted {
  mscclc_comm* comm;
  /// Another communicator may come to lie where that one was.
  std::weak_ptr<Collectives> collectives;
  CollectiveCall call;
  StreamHandle stream;
  std::vector<uint64_t> counts, input_offsets, output_offsets;
  std::string tag;

  /// The call, over these arrays where they lie now.
  RankCall rank_call() const {
    RankCall made{comm->collectives.get(), call, stream};
    made.call.counts = counts;
    made.call.input_offsets = input_offsets;
    made.call.output_offsets = output_offsets;
    made.call.tag = tag;
    return made;
  }
};

/// The calls of a thread between start and end.
struct OpenGroup {
  uint32_t depth = 0;
  std::vector<Noted> calls;
  mscclc_result_t refused = MSCCLC_SUCCESS;  ///< of a call
  std::string why;
};

/// mscclc_last_error(), mscclc_group_start() and _end() take no object that could hold it.
struct ThreadState {
  LastError last_error;
  OpenGroup group;

  static ThreadState& get() { return one_of_thread<ThreadState>(); }
};

}  // namespace mscclc::capi
