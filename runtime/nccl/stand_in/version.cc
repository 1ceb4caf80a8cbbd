// Which NCCL a stand-in says it is: STAND_IN_VERSION, which its target sets.
extern "C" {
extern const int stand_in_version;
const int stand_in_version = STAND_IN_VERSION;
}
