package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// everything is a document of two switches with each feature that one of the two can have:
// s1 bridges, routes and mirrors, and its queues have orders, admissions and a policy; s2
// has a crossbar, and gets the time from s1. In capitals is what changes.
const everything = `version: 1
memory: {frames: 3000}
switches:
  - name: s1
    id: 1
    mac: 02:aa:00:00:00:01
    seed: 7
    hash_fields: [src, dst, src_port, dst_port, protocol]
    loopback: [10.255.0.1]
    ports:
      - {interface: d0, netns: NETNS, rate: RATE0, qos: q, trust: dscp, acl: edge, vlan: {access: 10}, storm_control: {broadcast: 20Mbps}}
      - {interface: d1, netns: NETNS, rate: RATE1, qos: q, trust: dscp, acl: edge, vlan: {access: 10}, isolated: true, storm_control: {broadcast: 20Mbps}, faults: {loss: 1%, duplicate: 1%, reorder: 1%, reorder_delay: 200us, seed: 4}}
      - {interface: d2, netns: NETNS, rate: RATE2, qos: q, trust: dscp, acl: edge, vlan: {trunk: [10, 20], native: 10}, telemetry: {source: int-md, source_ports: [9100], sink: true}}
      - {interface: d3, netns: NETNS, rate: 50Mbps, qos: ordered, trust: dscp, address: [10.3.0.1/24, "fd00:3::1/64"]}
      - {interface: d4, netns: NETNS, rate: 10Mbps, qos: ordered, address: [10.4.0.1/24]}
      - {name: up, wire: s1-s2, rate: 50Mbps, qos: q, trust: dscp, address: [10.9.0.0/31]}
      - {name: other, wire: s1-s2b, rate: 50Mbps, trust: dscp, qos: q, address: [10.9.0.2/31]}
      - {name: copies, pcap: {write: CAPTURE, fast: true}}
    vlans: [{id: 10, address: [10.10.0.1/24]}, {id: 20}]
    classes: {dscp: {26: 3}}
    qos:
      q:
        queues:
          - {queue: 0, weight: 1, admission: {kind: codel, target: 5ms, interval: 100ms, ecn: true}}
          - {queue: 1, weight: 1}
          - {queue: 3, weight: 3, ecn: {kmin: 20KB, kmax: 60KB, pmax: 0.2}}
          - {queue: 4, weight: 1, admission: {kind: red, min: 5KB, max: 15KB, pmax: 0.1, weight: 9}}
          - {queue: 5, weight: 1, pi: {ref: 15KB, a: 4e-6, b: 3.9e-6, max: 0.1, period: 40us}}
          - {queue: 6, strict: true, max_rate: 10Mbps}
          - {queue: 7, strict: true}
        rocc: {queues: [3], qref: 15KB, qmid: 30KB, qmax: 36KB}
        qcn: {queues: [1], set_point: 6KB, sample: 15KB}
        hull: {queues: [4], drain: 0.95, threshold: 6KB}
        lossradar: {queues: [0, 1, 3], batch: 10ms, timeout: 2ms, cells: 400}
      ordered:
        queues:
          - {queue: 0, weight: 1, order: {kind: fq, quantum: 1514B, flows: 64, target: 5ms, interval: 100ms, ecn: true}}
          - {queue: 1, weight: 1, rank: slack, order: {kind: ranked}}
          - {queue: 2, weight: 1, policy: {text: "q = Queue(16KB); q.admPrio = value; q.procPrio = value;"}}
          - {queue: 6, shadow: {text: q = Queue(8KB);}}
          - {queue: 4, weight: 1, order: {kind: calendar, rate: 10Mbps}}
          - {queue: 5, weight: 1, rank: dscp, order: {kind: packs, levels: 8, depth: 10, window: 20}}
        push_out: {port: 64KB, queue: 48KB}
        lstf: {queues: [1], write: fair, rate: 5Mbps}
    buffer: {size: 2MB, limit: LIMIT}
    pfc: {classes: [3], watchdog: {detect: 20ms, restore: 10ms, action: drop}, err_disable: 1s, log: 64}
    telemetry: {int: true}
    routes:
      - {prefix: 10.60.NET.0/24, blackhole: true}
      - {prefix: 10.20.0.0/16, next_hops: [{via: 10.9.0.1, weight: 2}, {via: 10.9.0.3}], choose: weighted}
      - {prefix: 10.21.0.0/16, next_hops: [{via: 10.9.0.1}, {via: 10.9.0.3}]}
    paths: {choose: adaptive, thresholds: [16KiB, 64KiB]}
    acls:
      edge: [{seq: 10, match: {dst: 10.NET.0.0/16}, action: drop}, {seq: 20, match: {protocol: udp, dst_port: 9101}, police: {rate: 8Mbps, burst: 64KiB}}, {seq: 30, match: {protocol: udp, dst_port: 9102}, mirror: tap}, {seq: 40, match: {protocol: udp, dst_port: 9104}, set_class: 5}]
    fdb: {ageing: 2s, max: 4096, static: [{mac: 02:00:00:00:10:01, vlan: 10, port: d0}]}
    mirrors: [{name: tap, port: copies, snap: 128}]
    flowradar: {mode: both, slot: 100ms, flows: 2000}
    watch:
      probes: {from: [10.3.0.0/24]}
      reshuffle: [{vip: 10.255.0.9, to: [10.4.0.2, 10.4.0.3], from: [10.10.0.0/24]}]
      sessions:
        - {name: everflow, id: 1, to: 10.255.0.9, from: 10.10.0.1, format: erspan3, snap: 192, rate: 4Mbps, everflow: {sample: 4}, drops: [all], own_pauses: true, match: [{name: pauses, mac_control: true}]}
        - {name: sflow, to: 10.4.0.2, format: sflow, one_in: 100, counters: 1s}
        - {name: looked-at, port: copies, one_in: 50, match: [{name: web, headers: both, protocol: udp, dst_port: 9100, sample: 4}]}
    lldp: {interval: 5s}
    loops: {interval: 1s, shut: 5s}
    clock: {root: true, interval: 10ms}
  - name: s2
    id: 2
    mac: 02:aa:00:00:00:02
    pfc: {classes: [3]}
    crossbar: {ingress: 128KiB, egress: 128KiB, speedup: 4}
    qos: {metered: {lossradar: {queues: [0, 1, 3], batch: 10ms, timeout: 2ms, cells: 400}}}
    clock: {parent: down}
    telemetry: {int: true}
    lldp: {}
    flowradar: {mode: both, slot: 100ms, flows: 2000}
    ports:
      - {name: down, wire: s1-s2, qos: metered, rate: 50Mbps, trust: dscp, address: [10.9.0.1/31]}
      - {name: down2, wire: s1-s2b, qos: metered, rate: 50Mbps, trust: dscp, address: [10.9.0.3/31]}
      - {interface: d5, netns: NETNS, rate: 30Mbps, qos: metered, trust: dscp, address: [10.20.0.1/16]}
    routes: [{prefix: 10.0.0.0/8, via: 10.9.0.0}]
`

// withEverything is that document, with rates, limits, routes and rules by chance. It needs
// six hosts.
func withEverything(l *lab, dir string, rng *rand.Rand) string {
	rate := func(i int) string { return []string{"20Mbps", "5Mbps", "100Mbps"}[(i+rng.IntN(2))%3] }
	return strings.NewReplacer("NETNS", l.sw, "CAPTURE", filepath.Join(dir, "copies.pcap"), "RATE0", rate(0), "RATE1", rate(1), "RATE2", rate(2),
		"LIMIT", fmt.Sprintf("%dKB", 100+rng.IntN(100)), "NET", fmt.Sprint(100+rng.IntN(100))).Replace(everything)
}
