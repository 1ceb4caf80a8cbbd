#include "tests/explore/state.h"

#include <xxhash.h>

#include <array>

namespace mscclc::explorer {
namespace {

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& out, const Knowledge& k) {
  append(out, k.done);
  append(out, k.read);
  append(out, k.hollow);
}

void append(std::string& out, const Published& t) {
  append(out, t.strong);
  append(out, t.weak);
}

}  // namespace

Digest State::digest() const {
  std::string out;
  for (const ProcessState& p : processes) {
    append(out, p.step);
    append(out, p.call);
    append(out, p.knows);
  }
  for (const CellState& c : cells) {
    append(out, std::array{c.value, c.stamp, c.writer, static_cast<uint16_t>(c.hollow)});
    append(out, c.also);
    append(out, c.readers);
    append(out, c.from);
  }
  for (const std::vector<Counter>* list : {&channels, &semaphores}) {
    for (const Counter& c : *list) {
      append(out, std::array{c.value, static_cast<uint16_t>(c.arrived.size())});
      for (const Published& t : c.arrived) append(out, t);
      append(out, c.all);
    }
  }
  for (const FlagState& flag : flags) {
    append(out, flag.raised);
    append(out, flag.knows);
  }
  for (const std::vector<Posted>& queue : ports) {
    append(out, queue.size());
    for (const Posted& q : queue) {
      append(out, std::array{q.process, q.step, q.call});
      append(out, q.knows);
    }
  }
  append(out, served);
  append(out, ended);
  for (const Events& known : entries) append(out, known);
  const XXH128_hash_t hash = XXH3_128bits(out.data(), out.size());
  return {hash.low64, hash.high64};
}

}  // namespace mscclc::explorer
