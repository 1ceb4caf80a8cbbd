// How often the two ends of a bootstrap's connection look and speak.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mscclc {

/// An end that has said nothing for this long counts as dead though its machine answers: a process
/// that is stopped, or whose children hold its sockets. MSCCLC_SILENCE sets another.
constexpr std::chrono::milliseconds kSilence{30000};
/// How long an end that closes waits for the other to read what is under way.
constexpr std::chrono::seconds kGoodbyeTime{2};
/// How long a hub whose job has failed waits for ranks that have not come yet, to tell them.
constexpr std::chrono::seconds kTellTime{5};
/// Unix sockets that a job's hub may listen at: others may hold some of the names.
constexpr uint16_t kLocalNames = 16;
/// The unix socket at which a hub listens when all ranks have come, for those that come too late.
/// No hub that waits for ranks needs its name.
constexpr uint16_t kLateName = 0;
constexpr int kBusyTickMs = 20;

/// Each end says something this often, if only that it lives.
inline std::chrono::milliseconds heartbeat(std::chrono::milliseconds silence) {
  return std::min<std::chrono::milliseconds>(silence / 4, std::chrono::seconds(5));
}
/// How often an end looks up that has nothing to do.
inline int idle_tick_ms(std::chrono::milliseconds silence) {
  return static_cast<int>(std::min<int64_t>(heartbeat(silence).count() / 2, 1000));
}

/// Has this end been taken for dead because it was stopped? It last spoke `silent` ago, and looked
/// at nothing for `asleep`. (An end that looks is silent, too, where the other does not read.)
inline bool was_stopped(std::chrono::nanoseconds silent, std::chrono::nanoseconds asleep,
                        std::chrono::milliseconds silence) {
  return silent >= silence && asleep >= silence / 2;
}

}  // namespace mscclc
