#include "runtime/support/settings/settings.h"

#include <algorithm>

#include "runtime/support/address/address.h"
#include "runtime/support/address/unique_id.h"
#include "runtime/support/settings/hca_list.h"

namespace mscclc {
namespace {

/// Of variables whose values have a form of their own. Their text is right.
void check_contents(const Environment& environment, Diagnostics& diagnostics) {
  Diagnostics reported;  // by check_ours()
  if (environment.has(Variable::MSCCLC_ID)) (void)UniqueId::of_variable(environment, diagnostics);
  if (environment.has(Variable::MSCCLC_SOCKET_IFNAME)) {
    const auto names = environment.text(Variable::MSCCLC_SOCKET_IFNAME, reported);
    if (names) (void)check_interface_pattern(*names, diagnostics);
  }
  if (environment.has(Variable::MSCCLC_IB_HCA)) {
    const auto devices = environment.text(Variable::MSCCLC_IB_HCA, reported);
    if (devices) (void)read_hca_list(*devices, diagnostics);
  }
}

}  // namespace

bool check_settings(const Environment& environment, Diagnostics& diagnostics) {
  Diagnostics found;
  (void)environment.check_ours(found);
  check_contents(environment, found);
  for (const Diagnostic& mistake : found.all()) {
    // A device that needed the variable may have said so.
    const auto is_reported = [&](const Diagnostic& d) { return d.message == mistake.message; };
    if (std::ranges::none_of(diagnostics.all(), is_reported)) diagnostics.add(mistake);
  }
  return !found.has_errors();
}

}  // namespace mscclc
