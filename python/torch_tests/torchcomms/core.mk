# Builds the core of TorchComms, without backends of NVIDIA and AMD, from its sources and the torch of an
# environment. `run`, beside this file, runs it in a copy of the sources:
#
#   make -f core.mk PYTHON=…    needs g++ 11 and Debian's libgoogle-glog-dev, libfmt-dev, nlohmann-json3-dev

here := comms/torchcomms
python = $(shell $(PYTHON) -c 'import os, sysconfig, torch; print($(1))')
torch := $(call python,os.path.dirname(torch.__file__))
suffix := $(call python,sysconfig.get_config_var("EXT_SUFFIX"))
headers := $(call python,sysconfig.get_paths()["include"])

bindings := $(wildcard $(here)/*Py.cpp $(here)/utils/*Py.cpp)
core := $(filter-out $(bindings),$(wildcard $(addprefix $(here)/,*.cpp fake/*.cpp utils/*.cpp)))
bindings += $(wildcard $(here)/hooks/*/*.cpp)

CXXFLAGS := -std=c++20 -O1 -w -fPIC -I. -I$(torch)/include -I$(torch)/include/torch/csrc/api/include -I$(headers) \
  -DFMT_HEADER_ONLY -DTORCH_API_INCLUDE_EXTENSION_H -DTORCH_EXTENSION_NAME=_comms
LDFLAGS := -shared -L$(torch)/lib -lc10 -ltorch_cpu -ltorch -Wl,-rpath,$(torch)/lib:'$$ORIGIN'

all: $(here)/_comms$(suffix)

$(here)/libtorchcomms.so: $(core:.cpp=.o)
	$(CXX) -o $@ $^ -Wl,-soname,libtorchcomms.so $(LDFLAGS) -lglog

$(here)/_comms$(suffix): $(bindings:.cpp=.o) $(here)/libtorchcomms.so
	$(CXX) -o $@ $(bindings:.cpp=.o) -L$(here) -ltorchcomms $(LDFLAGS) -ltorch_python
