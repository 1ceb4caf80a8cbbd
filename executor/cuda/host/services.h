// What others do while blocks of a grid run, such as a proxy.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace mscclc::cuda::host {

/// Thread safety: as the Gpu's.
class Services {
 public:
  /// Returns false if there was nothing to do. Called until it is removed.
  using Service = std::function<bool()>;
  uint32_t add(Service service) {
    services_.emplace_back(next_, std::move(service));
    return next_++;
  }
  void remove(uint32_t id) {
    std::erase_if(services_, [&](const auto& service) { return service.first == id; });
  }
  /// Calls all of them; false: none had anything to do.
  bool serve() const {
    bool any = false;
    for (const auto& [id, service] : services_) any |= service();
    return any;
  }

 private:
  std::vector<std::pair<uint32_t, Service>> services_;
  uint32_t next_ = 0;
};

}  // namespace mscclc::cuda::host
