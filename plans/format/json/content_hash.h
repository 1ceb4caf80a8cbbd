// The content hash of a plan: XXH3-128 over its canonical bytes, that is its compact JSON without
// the member `hash` of `mscclc`. Distinguishes a changed plan from the one that was written,
// and names plans in registries; it is no defence against forgery.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace mscclc {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  void update(std::string_view bytes);
  /// 32 lower-case hex digits, most significant first.
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
