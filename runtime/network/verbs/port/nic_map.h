// The map of GPUs and network ports that 'mscclc topology' prints: how far they are from each
// other, and which port each GPU's lanes use.
#pragma once

#include <string>

#include "runtime/network/verbs/port/pci.h"
#include "runtime/support/settings/hca_list.h"

namespace mscclc::verbs {

/// `allowed`: as MSCCLC_IB_HCA says. Ports that are not active or not allowed are not taken.
std::string nic_map(const PciTree& tree, const HcaList& allowed);

}  // namespace mscclc::verbs
