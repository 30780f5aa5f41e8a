package control

import (
	"slices"
	"time"

	"gswitch/config"
	"gswitch/frame"
	"gswitch/metrics"
)

const (
	// lostPoll is how often the log checks whether lossless classes have lost frames.
	lostPoll = time.Second
	// lostAgain is how long a port is not named again that goes on losing frames.
	lostAgain = time.Minute
)

// lostFrames is what the log has of the frames that lossless classes lost at a port.
type lostFrames struct {
	frames uint64
	at     time.Time
}

// logLost warns of ports at which lossless classes have lost frames for want of headroom.
func (d *Daemon) logLost(now time.Time, was map[string]lostFrames) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !slices.ContainsFunc(d.resolved.Switches, func(s config.Switch) bool { return s.PFC.Pause || len(s.PFC.Classes) > 0 }) {
		return // a snapshot costs as much as a scrape of the metrics
	}
	snap := d.snapshot()
	late := uint64(0)
	for i := range snap.Engine.Workers {
		late = max(late, snap.Engine.Workers[i].Lateness.Max)
	}
	for i := range snap.Switches {
		sw := &snap.Switches[i]
		for j := range sw.Ports {
			port := metrics.PortName(sw.Name, sw.Ports[j].Config.Name)
			lost, before := sw.Ports[j].Counts.Drops[frame.HeadroomFull], was[port]
			if before.frames = min(before.frames, lost); lost == before.frames || !before.at.IsZero() && now.Sub(before.at) < lostAgain {
				continue
			}
			was[port] = lostFrames{lost, now}
			d.log.Warn("lossless classes lose frames: a pause took longer to act than headroom allows for", "port", port,
				"drops", lost-before.frames, "reason", frame.HeadroomFull, "response", sw.Program.Config.Buffer.Response.Duration(), "workers_late_by_at_most", time.Duration(late),
				"do", "raise buffer.lossless.response, and buffer.size or memory.frames with it, or lower the rate of the port")
		}
	}
}
