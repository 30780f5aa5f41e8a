#!/usr/bin/env bash
# Sends UDP frames from a device with the kernel's own generator, where its module exists: a source of
# ordinary socket buffers to set beside the frames of `gbench gen`.
#
#	bench/pktgen.sh -i DEV -m DSTMAC [-s 64] [-t 10] [-r PPS] [-c CPU] [-d 10.2.0.2] [-f FLOWS]
#	bench/pktgen.sh -k        only check whether this machine has it
#
# In a namespace: ip netns exec NS bench/pktgen.sh ... (the generator's threads live in the namespace that
# is theirs). Sizes count the FCS, as everywhere in bench/.
set -euo pipefail

P=/proc/net/pktgen
die() { echo "pktgen.sh: $*" >&2; exit 1; }
check() {
  [ "$(id -u)" = 0 ] || die "root is needed"
  [ -d $P ] || modprobe pktgen 2>/dev/null || true
  [ -d $P ] || die "this kernel has no pktgen (CONFIG_NET_PKTGEN): use gbench gen"
}

dev='' mac='' size=64 secs=10 rate=0 cpu=0 dst=10.2.0.2 flows=1
while getopts "i:m:s:t:r:c:d:f:kh" o; do
  case $o in
    i) dev=$OPTARG ;; m) mac=$OPTARG ;; s) size=$OPTARG ;; t) secs=$OPTARG ;; r) rate=$OPTARG ;;
    c) cpu=$OPTARG ;; d) dst=$OPTARG ;; f) flows=$OPTARG ;;
    k) check; echo "pktgen is here"; exit 0 ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
check
[ -n "$dev" ] && [ -n "$mac" ] || die "-i DEV and -m DSTMAC are needed"
[ -e "/sys/class/net/$dev" ] || die "there is no device $dev"
[ -e "$P/kpktgend_$cpu" ] || die "there is no generator thread for cpu $cpu"

# put FILE COMMAND: the file says afterwards whether the kernel took it.
put() {
  echo "$2" > "$P/$1" || die "$P/$1 refused '$2'"
  grep -q 'Result: OK' "$P/$1" || die "$P/$1: $(grep Result: "$P/$1")"
}

thread=kpktgend_$cpu
stop() { echo stop > $P/pgctrl 2>/dev/null || true; echo rem_device_all > "$P/$thread" 2>/dev/null || true; }
trap stop EXIT
trap 'exit 1' INT TERM
put "$thread" rem_device_all
put "$thread" "add_device $dev"
put "$dev" "count 0"
put "$dev" "clone_skb 0" # a veth keeps what it gets: no buffer may be sent twice
put "$dev" "pkt_size $((size - 4))"
put "$dev" "dst_mac $mac"
put "$dev" "dst $dst"
put "$dev" "udp_dst_min 9"
put "$dev" "udp_dst_max 9"
put "$dev" "udp_src_min 1024"
put "$dev" "udp_src_max $((1023 + flows))"
put "$dev" "flag UDPSRC_RND"
[ "$rate" = 0 ] || put "$dev" "ratep $rate"

echo start > $P/pgctrl & # returns when the generator ends
sleep "$secs"
echo stop > $P/pgctrl
wait
grep -E 'pps|Result|errors' "$P/$dev" || cat "$P/$dev"
