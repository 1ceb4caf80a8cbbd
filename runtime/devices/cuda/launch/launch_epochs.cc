#include "runtime/devices/cuda/launch/launch_epochs.h"

#include <algorithm>

namespace mscclc::cuda {

LaunchEpochs::InEpochs LaunchEpochs::add(const Launch& launch) {
  in_a_row_ =
      launch.stream == last_stream_ || streams_.empty() ? std::min(in_a_row_ + 1, kAlone) : 0;
  last_stream_ = launch.stream;
  const bool frees = launch.would_free && !launch.any_order && in_a_row_ == kAlone;
  const uint32_t needs = frees ? launch.room : std::min(launch.blocks, launch.room);
  const auto found = streams_.find(launch.stream);
  const bool joined = found != streams_.end();
  const uint32_t own = joined ? found->second : 0;
  const uint64_t used = used_ - own + std::max(own, needs);
  const uint32_t room = std::min(room_, launch.room);
  // A stream orders its launches itself: a single one needs no epochs.
  const bool alone = streams_.size() == (joined ? 1 : 0);
  const bool alike = streams_.empty() || launch.any_order == any_order_;
  any_order_ = launch.any_order;
  if (alike && (alone || used <= room)) {
    streams_[launch.stream] = std::max(own, needs);
    used_ = used;
    room_ = room;
    return {frees, false, !joined && !first_epoch_ && launch.stream != had_last_to_itself_};
  }
  had_last_to_itself_.reset();
  if (streams_.size() == 1) had_last_to_itself_ = streams_.begin()->first;
  streams_ = {{launch.stream, needs}};
  used_ = needs;
  room_ = launch.room;
  first_epoch_ = false;
  return {frees, true, true};
}

void LaunchEpochs::forget(uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  used_ -= found->second;
  streams_.erase(found);
}

}  // namespace mscclc::cuda
