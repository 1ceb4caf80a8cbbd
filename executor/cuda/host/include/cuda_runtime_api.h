// cuda_runtime_api.h of device code that is compiled for the host.
#pragma once

#include "executor/cuda/host/runtime.h"
