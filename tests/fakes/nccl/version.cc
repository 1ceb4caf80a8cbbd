// Which NCCL a fake says it is: FAKE_NCCL_VERSION, which its target sets.
extern "C" {
extern const int fake_nccl_version;
const int fake_nccl_version = FAKE_NCCL_VERSION;
}
