// What sources of kernels include, on the host: the machine's headers as they are, and no text of
// them all.
#pragma once

#include "tests/special/on_host/kernels.h"
