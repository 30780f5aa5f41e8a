package run

import (
	"context"
	"fmt"

	"gswitch/fabric/measure"
	"gswitch/fabric/results"
	"gswitch/fabric/scenario"
	"gswitch/fabric/vnet"
	"gswitch/frame"
)

// alone repeats every flow of rec by itself, one after the other in the same network, at
// line rate and without faults, and takes the time that each then needs as its ideal. It
// runs flows of the same size between the same hosts only once.
func alone(ctx context.Context, r *scenario.Run, rec *measure.Recorder) error {
	n, err := network(r, nil)
	if err != nil {
		return err
	}
	free, err := algorithm("none", scenario.Params{"window": "none"})
	if err != nil {
		return err
	}
	fct := frame.Never
	n.OnDone(func(_ frame.Time, d *vnet.Done) {
		fct = d.SenderEnd - d.Start
		if r.Doc.Measure.FCT == "arrival" {
			fct = d.FCT()
		}
	})
	type pair struct {
		src, dst string
		bytes    uint64
	}
	known := map[pair]float64{}
	rec.Reideal(func(w *results.Flow) float64 {
		key := pair{w.Src, w.Dst, w.Bytes}
		if t, ok := known[key]; ok || err != nil {
			return t
		}
		if err = ctx.Err(); err != nil {
			return 0
		}
		src, _ := n.HostByName(w.Src)
		dst, _ := n.HostByName(w.Dst)
		f := vnet.Flow{Src: src, Dst: dst, Bytes: w.Bytes, CC: free}
		now := n.Engine.Now()
		fct = frame.Never
		if err = n.StartFlow(now, &f); err != nil {
			return 0
		}
		// Give up at a thousandth of the speed that the path promises.
		for limit := 1000 * max(n.IdealAcked(src, dst, w.Bytes), frame.Microsecond); fct == frame.Never && n.Engine.Now() < now+limit; {
			if err = n.Engine.Run(n.Engine.Now() + max(n.IdealAcked(src, dst, w.Bytes)/4, 1)); err != nil {
				return 0
			}
		}
		if fct == frame.Never {
			err = fmt.Errorf("%d bytes from %s to %s do not arrive in a network of their own", w.Bytes, w.Src, w.Dst)
			return 0
		}
		known[key] = fct.Seconds()
		return known[key]
	})
	return err
}
