package vnet

import (
	"errors"
	"fmt"

	"gswitch/buffer"
	"gswitch/vswitch"
)

// BufferError reports a division of a switch's buffer that is impossible or unsafe. It
// wraps a *buffer.Error, which holds the safe value.
type BufferError struct {
	Switch string
	Port   string // neighbour at the port, "" if the error is not about one port
	Err    error
}

func (e *BufferError) Error() string {
	if e.Port == "" {
		return fmt.Sprintf("switch %s: %v", e.Switch, e.Err)
	}
	return fmt.Sprintf("switch %s, port to %s: %v", e.Switch, e.Port, e.Err)
}

func (e *BufferError) Unwrap() error { return e.Err }

// CheckBuffers checks, without building the network, that its buffers can be divided and
// that its lossless classes lose no frame. The error is a *BufferError where Build would
// reject the buffers as well, and where an explicitly configured threshold, which Build
// accepts, would lose frames.
func CheckBuffers(cfg *Config) error {
	n := &Network{cfg: *cfg, Topology: cfg.Topology}
	if err := n.check(); err != nil {
		return err
	}
	if !n.cfg.PFC.On {
		return nil
	}
	n.number()
	n.sizes()
	for _, node := range n.swNode {
		d := n.document(node)
		c, err := n.translate(&d, node)
		if err != nil {
			return err
		}
		if err := n.wholes(c, func(f *vswitch.Feature) bool { return f.Divide != nil }); err != nil {
			return err
		}
		if err := c.CheckBuffer(1); err != nil {
			e := &BufferError{Switch: c.Name, Err: err}
			var b *buffer.Error
			if errors.As(err, &b) && b.Port >= 0 {
				e.Port = c.Ports[b.Port].Name
			}
			return e
		}
	}
	return nil
}
