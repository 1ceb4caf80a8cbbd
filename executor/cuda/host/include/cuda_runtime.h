// cuda_runtime.h of device code that is compiled for the host.
#pragma once

#include "executor/cuda/host/runtime.h"
