// The real NCCL, which does what no plan does: where it is found, its functions, and the guard that
// keeps it from calling us.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"
#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/support/process/per_thread.h"

namespace mscclc::nccl {

/// The functions of an NCCL; those that it lacks are null. Thread safety: immutable.
struct RealNccl {
#define API(since, how, result, name, parameters, arguments) result(*name) parameters = nullptr;
#include "runtime/doors/nccl/abi/api.def"
#undef API
  int version = 0;   ///< as ncclGetVersion() codes it
  std::string path;  ///< the file
};

/// Where to look, best first, each an absolute path:
/// - what MSCCLC_NCCL names, and then nowhere else;
/// - libnccl_real.so.2 beside the file `self`;
/// - nvidia/nccl/lib/libnccl.so.2 beside the frameworks that `maps` (/proc/self/maps) names;
/// - libnccl.so.2 in the folders of the system and of CUDA.
std::vector<std::string> candidates(std::string_view named, std::string_view self,
                                    std::string_view maps);

/// Loads an NCCL so that its calls of its own functions stay inside it. Fails where there is none,
/// it is this library, or it lacks what every NCCL has.
Result<std::unique_ptr<const RealNccl>> load_real(const std::string& path);

/// The real NCCL of this process, found and loaded at the first call; stays loaded. nullptr: there
/// is none; why_no_real() says what was tried.
const RealNccl* real_nccl();
const std::string& why_no_real();
/// Puts another in its place, or none. For tests: no communicator may be alive.
void replace_real_nccl(std::unique_ptr<const RealNccl> real, std::string why);

/// While one lives the thread is inside a call of the real NCCL: what it calls of ours goes back to
/// it at once.
///
/// The thread's: NCCL calls functions by their names, which take no object that could say it.
/// Apart from what else is kept for threads, since NCCL's own make such calls until they end.
class InsideReal {
 public:
  InsideReal() { ++depth(); }
  ~InsideReal() { --depth(); }
  InsideReal(const InsideReal&) = delete;
  InsideReal& operator=(const InsideReal&) = delete;
  static bool here() { return depth() > 0; }

 private:
  struct Depth {
    int value = 0;
  };
  static int& depth() { return one_of_thread<Depth>().value; }
};

}  // namespace mscclc::nccl
