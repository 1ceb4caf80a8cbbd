// What sources of kernels include, on the host: the machine's headers as they are, and no text of
// them all.
#pragma once

#include "tests/compiled/on_host/kernels.h"
