package run

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"gswitch/fabric/scenario"
)

// measured is a network that reports what happened, in each way by itself and in all.
const measured = `
version: 1
title: What telemetry costs
topology:
  generate: leaf-spine(2, 2, 4)
  classes:
    host: {rate: 10Gbps, delay: 1us}
    fabric: {rate: 40Gbps, delay: 1us}
switch:
  ecn: {kmin: 97KB, kmax: 97KB}
hosts:
  cc: dctcp
workload:
  - {group: web, kind: poisson, sizes: WebSearch, load: 0.4, stop: 300ms}
measure: {series: 0}
duration: 320ms
seeds: [1]
variants:
  - {name: off}
  - name: watch
    set:
      switch.watch: {enabled: true, sessions: [{name: e, to: 10.0.1.4, format: gre, snap: 128, everflow: {sample: 10}}]}
  - name: flowradar
    set: {switch.flowradar: {enabled: true}}
  - name: lossradar
    set: {switch.lossradar: {enabled: true}}
  - name: exact
    set:
      switch.flowradar: {enabled: true, mode: exact}
      switch.lossradar: {enabled: true}
  - name: all
    set:
      switch.watch: {enabled: true, sessions: [{name: e, to: 10.0.1.4, format: gre, snap: 128, everflow: {sample: 10}}]}
      switch.flowradar: {enabled: true}
      switch.lossradar: {enabled: true}
`

// BenchmarkTelemetry runs a network with and without what says what happened, and
// counts the processor's time for each frame-hop, collecting and decoding among it.
func BenchmarkTelemetry(b *testing.B) {
	for _, name := range []string{"off", "watch", "flowradar", "lossradar", "exact", "all"} {
		b.Run(name, func(b *testing.B) {
			s, err := scenario.Parse("measured.yaml", []byte(measured), scenario.Options{Only: []string{name}})
			if err != nil {
				b.Fatal(err)
			}
			var hops uint64
			var spent int64
			for b.Loop() {
				before := processorTime(b)
				f, err := Scenario(context.Background(), s, Options{Jobs: 1})
				if err != nil {
					b.Fatal(err)
				}
				spent += processorTime(b) - before
				hops += f.Runs[0].FrameHops
			}
			b.ReportMetric(float64(spent)/float64(hops), "cpu-ns/hop")
			b.ReportMetric(float64(hops)/float64(b.N)/1e6, "Mhops")
		})
	}
}

// processorTime is what the process has taken of it, in ns.
func processorTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
