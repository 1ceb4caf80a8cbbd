// How often the two ends of a bootstrap's connection look and speak.
#pragma once

#include <algorithm>
#include <chrono>

namespace mscclc {

/// Each end says something at least this often, if only that it lives.
constexpr std::chrono::seconds kHeartbeat{5};
/// How long an end that closes waits for the other to read what is under way.
constexpr std::chrono::seconds kGoodbyeTime{2};
constexpr int kBusyTickMs = 20;
constexpr int kIdleTickMs = 1000;

/// An end that has said nothing for this long counts as dead though its machine answers: a process
/// that is stopped, or whose children hold its sockets.
inline std::chrono::milliseconds silence_limit(std::chrono::milliseconds timeout) {
  return std::max<std::chrono::milliseconds>(timeout, 4 * kHeartbeat);
}

}  // namespace mscclc
