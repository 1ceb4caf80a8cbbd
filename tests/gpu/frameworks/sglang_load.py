"""SGLang 0.5.12 for a machine with GPUs that fetches nothing, for sglang_engine.py: wheels, cut to code for sm_90.

    python3 tests/gpu/frameworks/sglang_load.py make WORK        # 0.6 GB, 2 minutes; the load is WORK/out, 22 MB
    python3 tests/gpu/frameworks/sglang_load.py unpack OUT FOLDER    # there; then: . FOLDER/environment

There must be Python 3.12, torch 2.11.0 (CUDA 13), nvcc, ninja, g++ (SGLang compiles kernels as it starts), and common
packages (aiohttp, einops, psutil, scipy, torchvision, uvloop …). Left out: FlashInfer, FlashAttention 3, code for other
GPUs, grammars, diffusion."""

import glob
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

PACKAGES = """
annotated-types==0.8.0 --hash=sha256:f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0
apache-tvm-ffi==0.1.9 --hash=sha256:f45eb43499acac45ff6c93564f0ff2d3ca27b69656d540fd56ce59d51c0b4c65
compressed-tensors==0.17.0 --hash=sha256:4a1b89b508f7efb8ffb4eee8a6e69e0452d9b080cae130146025c64fbe9fa9aa
dill==0.4.1 --hash=sha256:1e1ce33e978ae97fcfcff5638477032b801c46c7c65cf717f95fbc2248f79a9d
distro==1.9.0 --hash=sha256:7bffd925d65168f85027d8da9af6bddab658135b840670a223589bc0c8ef02b2
fastapi==0.136.3 --hash=sha256:3d2a69bdf04b7e9f3afa292c3bc7a98816bbfafa10bc9b45f3f3700d2f761620
gguf==0.19.0 --hash=sha256:70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd
jiter==0.19.0 --hash=sha256:0956b5f58b804221dfb929c120e6d4032138fed20c1cc0ef683a2d1326255e46
loguru==0.7.3 --hash=sha256:31a33c10c8e1e10422bfd431aeb5d351c7cf7fa671e3c4df004162264b28220c
msgspec==0.22.0 --hash=sha256:99c401861c5bb3a57f7d6423ea7ed4352cd57aa3f04f4fbe9f3e3e4564a10f08
openai==2.6.1 --hash=sha256:904e4b5254a8416746a2f05649594fa41b19d799843cd134dac86167e094edef
orjson==3.13.0 --hash=sha256:bceadfd314bd238f584fc229a4bbaf0e573597e7a026dec5429fbf29fd66c641
partial-json-parser==0.2.1.1.post7 --hash=sha256:145119e5eabcf80cbb13844a6b50a85c68bf99d376f8ed771e2a3c3b03e653ae
pybase64==1.5.1 --hash=sha256:c212d02fd072c5845d39b4699eb65efa827b79a5cf7fecc9f468f8cad2b8540f
pydantic==2.14.4 --hash=sha256:653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc
pydantic-core==2.50.5 --hash=sha256:470bbc2495367f60d3ca849a8039e4c164701d10637e7743f4427d92651bdb6d
python-multipart==0.0.34 --hash=sha256:ebacd224bd686eee2f9aa1066a657affe07435a185834e05e5235e2e59173e91
pyzmq==27.3.0 --hash=sha256:858fe25231e0fd8612da142efde019faa5ef63fa150a821a27870e791b38c798
setproctitle==1.3.8 --hash=sha256:4a765e0c80a2453480be27c4fc22ba1c0771867040c5f91e4221940d78a4abfb
sglang==0.5.12 --hash=sha256:d3fc7ecb61ad3e533ebe1ae9b4109fbb62ecbf2d17453b62770c8a7ec49d539a
sglang-kernel==0.4.2.post2 --hash=sha256:f275ce01010933c4ea655e832a05442b766ab8f23dcfd6ff678b15e295d42203
sniffio==1.3.1 --hash=sha256:2f6da418d1f1e0fddd844478f41680e794e6051915791a034ff65e5f100525a2
starlette==1.10.0 --hash=sha256:478c0ab3b4ced6e82719849c118fa406f0278a3499c1a898cd15cd31bdc38ce4
tokenizers==0.22.2 --hash=sha256:369cc9fc8cc10cb24143873a0d95438bb8ee257bb80c71989e3ee290e8d72c67
transformers==5.6.0 --hash=sha256:def5aac47b28e2f1386fa64f2f458a5474ba7733ab74c1765e7c67a79d1f1cbd
typing-inspection==0.4.5 --hash=sha256:bc210535442b39e1bf2805e0c7a17dfd6a4ace760c84c7f7d16245d23a6b1c39
uvicorn==0.54.0 --hash=sha256:505bdb0f318731d45f1f712071fc781a8981f6847a31c902c9f5e652d4f67faf
watchfiles==1.3.0 --hash=sha256:b5768b49e426fd5b550b012c866db347cdf15c398ef98dc557b6e6b72fa74cd1
"""
# MSCCL++ and the C++ of both are not needed, as their kernels are in sm90/common_ops.
LEFT_OUT = re.compile(r"sgl_kernel/(flash_ops|flashmla_ops|spatial_ops|sm100)|(lib|lib64|include|triton_kernels)/|"
                      r"_mscclpp|[^/]+\.data/scripts/|sglang/(multimodal_gen|test|eval|benchmark)/")  # fmt: skip
PRUNED = "sgl_kernel/sm90/common_ops.abi3.so"
ACTIVATION = "sglang/jit_kernel/csrc/elementwise/activation.cuh"
# Instead of packages that SGLang imports and does not use here; its samplers are those of PyTorch.
STUBS = {
    "IPython/__init__.py": "", "IPython/display.py": "HTML = display = None\n", "flashinfer/__init__.py": "",
    "flashinfer/sampling.py": "min_p_sampling_from_probs = top_k_top_p_sampling_from_probs = None\n",
}  # fmt: skip
# common_ops is linked with libnuma, for MSCCL++; where it is not installed, this stands in, and is never called.
NUMA = ("copy_nodemask_to_bitmask", "numa_allocate_nodemask", "numa_bind", "numa_bitmask_clearall", "numa_bitmask_free",
        "numa_num_configured_nodes")  # fmt: skip
CUBIN = 2


def prune(data, keep=90):
    """Zeroes what other GPUs run in the CUDA code of an ELF64 library; its size stays. Returns the bytes kept."""
    table, = struct.unpack_from("<Q", data, 40)
    entry, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    kept = 0
    for section in sections:
        name = sections[names][4] + section[0]
        if bytes(data[name : data.index(0, name)]) not in (b".nv_fatbin", b"__nv_relfatbin"):
            continue
        at, end = section[4], section[4] + section[5]
        while at < end:
            magic, _, header, length = struct.unpack_from("<IHHQ", data, at)
            if magic != 0xBA55ED50:  # alignment between fatbins
                at += 8
                continue
            part, at = at + header, at + header + length
            while part < at:
                kind, _, before, payload = struct.unpack_from("<HHIQ", data, part)
                start, part = part + before, part + before + payload
                if (kind, *struct.unpack_from("<I", data, start - before + 28)) == (CUBIN, keep):
                    kept += payload
                else:
                    data[start:part] = bytes(payload)
    return kept


def unpack_wheels(wheels, site):
    for wheel in sorted(glob.glob(wheels + "/*.whl")):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(site, [one for one in file.namelist() if not LEFT_OUT.match(one)])


def change(site):
    with open(os.path.join(site, PRUNED), "r+b") as file:
        data = bytearray(file.read())
        assert prune(data), "no code for sm_90"
        file.seek(0)
        file.write(data)
    # g++ 12 does not take a variable template as an expression there.
    with open(os.path.join(site, ACTIVATION), "r+") as file:
        text, count = re.subn(r"\bactivation_kernel<(ActivationKind::\w+), kFilterExpert>",
                              r"&act_and_mul_kernel<T, \1, kUsePDL, kFilterExpert>", file.read())  # fmt: skip
        assert count == 4, "another SGLang"
        file.seek(0)
        file.write(text)
    for name, text in STUBS.items():
        os.makedirs(os.path.dirname(os.path.join(site, name)), exist_ok=True)
        with open(os.path.join(site, name), "w") as file:
            file.write(text)


def make(work, size=28 << 20):
    """Packages of WORK/wheels are not fetched again."""
    os.makedirs(work, exist_ok=True)
    wheels, site, out = (os.path.join(work, name) for name in ("wheels", "site", "out"))
    with open(os.path.join(work, "packages"), "w") as file:
        file.write(PACKAGES)
    platforms = [f"--platform=manylinux_{one}_x86_64" for one in ("2_34", "2_28", "2_26", "2_24", "2_17", "2_5")]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes",
         "--python-version=3.12", "--implementation=cp", *platforms, "--platform=manylinux2014_x86_64", "-d", wheels,
         "-r", file.name], check=True)  # fmt: skip
    for old in (site, out):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(out)
    unpack_wheels(wheels, site)
    change(site)
    packed = os.path.join(work, "packed")
    with lzma.open(packed, "wb", preset=2) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        tar.add(site, "site")
    with open(packed, "rb") as file:
        for number, data in enumerate(iter(lambda: file.read(size), b"")):
            with open(os.path.join(out, f"load.{number:02}"), "wb") as part:
                part.write(data)
            print(f"load.{number:02}: {len(data)} bytes")


def unpack(out, folder):
    """Unpacks, and writes FOLDER/environment."""
    folder = os.path.abspath(folder)
    libraries = os.path.join(folder, "lib")
    os.makedirs(libraries, exist_ok=True)
    with open(os.path.join(folder, "packed"), "wb+") as packed:
        for part in sorted(glob.glob(out + "/load.*")):
            with open(part, "rb") as file:
                shutil.copyfileobj(file, packed)
        packed.seek(0)
        with lzma.open(packed) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            tar.extractall(folder, filter="tar")
    os.remove(packed.name)
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    if "libnuma.so.1 " not in known:
        source = "\n".join(f"void {name}(void) {{ __builtin_trap(); }}" for name in NUMA)
        with open(os.path.join(folder, "numa.map"), "w") as file:
            file.write("libnuma_1.2 { global: *; };\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-Wl,-soname,libnuma.so.1", "-Wl,--version-script=" +
                        file.name, "-o", libraries + "/libnuma.so.1"], input=source, text=True, check=True)  # fmt: skip
    # SGLang's own all-reduce is linked with -lcuda, and a driver has no libcuda.so.
    driver = re.findall(r"libcuda\.so\.1 .*=> (\S+)", known) + glob.glob("/usr/local/nvidia/lib*/libcuda.so.1")
    if driver and not os.path.lexists(libraries + "/libcuda.so"):
        os.symlink(driver[0], libraries + "/libcuda.so")
    with open(os.path.join(folder, "environment"), "w") as file:
        for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH"):
            value = folder + "/site" if name == "PYTHONPATH" else libraries
            file.write(f'export {name}="{value}${{{name}:+:${name}}}"\n')
        file.write("export SGLANG_IS_FLASHINFER_AVAILABLE=false\n")
        file.write(f'export TVM_FFI_CACHE_DIR="{folder}/kernels" TRITON_CACHE_DIR="{folder}/triton"\n')
    print("driver:", driver)


if __name__ == "__main__":
    {"make": make, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
