#!/bin/busybox sh
# The first process of the virtual machine (run.sh): mounts, devices, then the command, whose exit
# status it prints.
busybox mkdir -p /proc /sys /dev /host /write /root
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox --install -s /bin
PATH=/bin:/usr/bin:/usr/sbin:/sbin
export PATH

end() {
  echo "softroce: ended with $1"
  sleep 1
  reboot -f
}

while read -r module; do
  insmod "$module" || end 1
done </modules/list

# This system's files, under a layer that takes what is written.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=524288 host /host || end 1
mount -t tmpfs write /write
mkdir /write/files /write/work
mount -t overlay -o lowerdir=/host,upperdir=/write/files,workdir=/write/work files /root || end 1
for folder in proc sys dev; do mount --rbind /$folder /root/$folder; done
mkdir -p /root/dev/shm /root/dev/pts
mount -t tmpfs shm /root/dev/shm
ln -sf /proc/self/fd /root/dev/fd

# Both ends of the pair are in one network namespace, as rdma_rxe knows no other: they must take
# packets from addresses of this machine, and be given each other's.
for which in all default; do
  echo 1 >/proc/sys/net/ipv4/conf/$which/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$which/rp_filter
done
cat >/root/network.sh <<'EOF'
set -e
PATH=$PATH:/usr/sbin:/sbin
ip -batch - <<BATCH
link set lo up
link add veth0 address 02:00:00:00:00:01 mtu 4200 type veth peer name veth1 address 02:00:00:00:00:02 mtu 4200
addr add 10.77.0.1/24 dev veth0
addr add 10.77.0.2/24 dev veth1
link set veth0 up
link set veth1 up
neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev veth0 nud permanent
neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01 dev veth1 nud permanent
BATCH
for i in 0 1; do rdma link add rxe$i type rxe netdev veth$i; done
EOF
chroot /root /bin/sh /network.sh || end 1

cp /command /root/command
ulimit -l unlimited
chroot /root /bin/sh /command </dev/null 2>&1
end $?
