#!/bin/sh
# Builds the C forwarder to $1 where a compiler and the kernel's headers are; says so where not.
set -eu
src=$(dirname "$0")/l2fwd.c
cc=$(command -v cc || command -v gcc || command -v clang) || { echo "no C compiler: the C forwarder is left out"; exit 0; }
echo '#include <linux/if_xdp.h>' | "$cc" -E - >/dev/null 2>&1 || { echo "no linux/if_xdp.h: the C forwarder is left out"; exit 0; }
mkdir -p "$(dirname "$1")"
"$cc" -O2 -Wall -Wextra -o "$1" "$src"
