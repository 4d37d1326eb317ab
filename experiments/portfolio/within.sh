#!/bin/sh
# Runs a server with a share of a CPU and a bound of memory, where CPU_PERCENT and MEMORY_MIB name them:
#
#     CPU_PERCENT=10 MEMORY_MIB=128 sh within.sh NAME PROGRAM [WORD…]
#
# Without them it only runs the program. Needs root, and the control groups cpu and memory. The groups are called NAME and stay.
set -eu
name=$1
shift
[ -n "${CPU_PERCENT:-}" ] || exec "$@"
period_us=100000
quota_us=$((period_us * CPU_PERCENT / 100))
memory_bytes=$((MEMORY_MIB * 1024 * 1024))
root=/sys/fs/cgroup

if [ -e "$root/cgroup.controllers" ]; then
	cpu=$root/$name
	memory=$root/$name
	mkdir -p "$cpu"
	echo "$quota_us $period_us" >"$cpu/cpu.max"
	echo "$memory_bytes" >"$memory/memory.max"
else
	cpu=$root/cpu/$name
	memory=$root/memory/$name
	mkdir -p "$cpu" "$memory"
	echo "$period_us" >"$cpu/cpu.cfs_period_us"
	echo "$quota_us" >"$cpu/cpu.cfs_quota_us"
	echo "$memory_bytes" >"$memory/memory.limit_in_bytes"
fi
echo $$ >"$cpu/cgroup.procs"
echo $$ >"$memory/cgroup.procs"
exec "$@"
