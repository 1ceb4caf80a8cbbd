// What a thread has one of: a door's functions take no object that could hold it.
#pragma once

namespace mscclc {

/// The one T of the thread; it is made when the thread first asks for it, and ends with the thread.
/// REQUIRES: T is used for one thing, so it says which.
template <class T>
T& one_of_thread() {
  static thread_local T made;
  return made;
}

}  // namespace mscclc
