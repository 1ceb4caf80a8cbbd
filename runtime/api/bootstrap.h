// How ranks find each other and exchange small messages, before there are channels: the control
// plane of a communicator. Nothing here is fast, and no data of a collective goes this way.
//
// A bootstrap also notices when a rank dies: every operation of every other rank then ends with an
// error that names it, and registered callbacks are called at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Stands for a rank that is not known.
inline constexpr uint32_t kNoRank = UINT32_MAX;
/// An end that has said nothing for this long counts as dead though its machine answers: a process
/// that is stopped, or whose children hold its sockets. MSCCLC_SILENCE sets another.
inline constexpr std::chrono::milliseconds kSilence{30000};

/// What a rank whose blocks have given up has waited for.
struct WaitReport {
  std::vector<uint32_t> awaited;  ///< ranks that should have sent something
  std::string why;                ///< "2 thread blocks waited longer than 5 s …"
};

/// Thread safety: steps are for one thread at a time; fail(), on_failure() and report_waits() may
/// come from any.
class Bootstrap {
 public:
  /// Bytes that a rank may give to one exchange.
  static constexpr uint64_t kMaxBytes = 16u << 20;

  virtual ~Bootstrap() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// Collective: gives every rank the bytes of all ranks, in rank order. Ranks must name the same
  /// step `what` (it appears in errors: "rank 3 did not reach 'connect' within 30 s"). Errors:
  /// bootstrap-timeout (names the missing ranks), rank-died, call-differs (another rank is at
  /// another step), message-too-long.
  [[nodiscard]] virtual bool all_gather(std::span<const uint8_t> own, std::string_view what,
                                        std::vector<std::vector<uint8_t>>& all,
                                        Diagnostics& diagnostics) = 0;
  /// Collective: no rank leaves before all have come.
  [[nodiscard]] bool barrier(std::string_view what, Diagnostics& diagnostics) {
    std::vector<std::vector<uint8_t>> all;
    return all_gather({}, what, all, diagnostics);
  }

  /// Calls fn(why) once, from a thread of the bootstrap, when a rank has died or has left with
  /// fail(); at once if that is known already. fn must not call the bootstrap. Each that was given
  /// is called, in their order.
  virtual void on_failure(std::function<void(const std::string& why)> fn) = 0;
  /// Notifies all other ranks that this one gives up, and why: their on_failure() is called.
  virtual void fail(const std::string& why) = 0;

  /// Notifies all other ranks that blocks of this one have given up, and what they waited for:
  /// their on_failure() is called, so that their blocks give up too. Only the first call sends the
  /// report; later ones ask for the verdict. When all live ranks have reported, after a few seconds
  /// at most, the reports form one wait graph, and its verdict is the same at every rank: the first
  /// line says which rank did not answer, the others which ranks wait for which. If something else
  /// had ended the bootstrap before, that is the verdict. `wait`: until it is there; otherwise
  /// nullopt says that there is none yet.
  virtual std::optional<std::string> report_waits(const WaitReport& own,
                                                  [[maybe_unused]] bool wait) {
    fail(own.why);
    return own.why;
  }
};

}  // namespace mscclc
