# What the scripts share that run in the virtual machine. Arguments: verbs_lane_test,
# verbs_nodes_test, mscclc, and for those that use it remote_adds_test.
set -u
lanes=$1 nodes=$2 mscclc=$3 adds=${4-}
failed=0

# The machine is emulated, and slow: answers may come late, which must not count as a loss, nor long
# silence as a death.
export MSCCLC_IBV_SO=libibverbs.so.1 MSCCLC_LANE=verbs MSCCLC_IB_TIMEOUT=21 MSCCLC_SILENCE=120
export MSCCLC_FLIGHT_FILE=none HOME=/tmp

check() {  # what it shows, command...
  what=$1
  begun=$(date +%s)
  shift
  if "$@" >/tmp/said 2>&1; then
    echo "ok: $what ($(($(date +%s) - begun)) s)"
  else
    cat /tmp/said
    echo "FAILED: $what ($(($(date +%s) - begun)) s)"
    failed=1
  fi
}

says() {  # text, command...: it fails, and says that
  text=$1
  shift
  ! "$@" >/tmp/all 2>&1 || return 1
  cat /tmp/all
  grep -qF "$text" /tmp/all
}

plan() {  # name, ranks, ranks of a node, sizes, options...
  name=$1 ranks=$2 node=$3 sizes=$4
  shift 4
  "$mscclc" run "plans/$name.mscl" -D world="$ranks" -D gpus="$node" --bytes "$sizes" --iters 2 \
    --device processes --ranks-per-node "$node" "$@"
}
