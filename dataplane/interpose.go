package dataplane

import (
	"fmt"

	"gswitch/frame"
)

// Interpose puts what wrap makes of a node in the node's place, between two
// steps: from then on the engine calls that, which calls the node. Ports stay
// with the node that was added, and it is named by that. What it implements
// besides frame.Node (Handoff, Backpressured, Posted, DropTap, Flusher) the engine goes on to ask
// of the node itself. If wrap returns an error nothing changes. It runs on
// the worker and must not block.
func (e *Engine) Interpose(worker int, n frame.Node, wrap func(now frame.Time, n frame.Node) (frame.Node, error)) error {
	return e.onNode(worker, n, func(now frame.Time, nd *node) error {
		if nd.Node != nd.id {
			return fmt.Errorf("the node on worker %d is wrapped already", worker)
		}
		outer, err := wrap(now, n)
		if err == nil {
			nd.Node = outer
		}
		return err
	})
}

// Uninterpose puts the node itself back. It returns an error if it is not
// wrapped.
func (e *Engine) Uninterpose(worker int, n frame.Node) error {
	return e.onNode(worker, n, func(_ frame.Time, nd *node) error {
		if nd.Node == nd.id {
			return fmt.Errorf("the node on worker %d is not wrapped", worker)
		}
		nd.Node = nd.id
		return nil
	})
}

// Advance lets a node do what is due, beside the worker's own loop: a new
// program, for example, is in force when it returns.
func (e *Engine) Advance(worker int, n frame.Node) error {
	return e.onNode(worker, n, func(now frame.Time, nd *node) error {
		e.workers[worker].advance(now, nd)
		return nil
	})
}

// Commanded is implemented by what is interposed at a node if it is to see
// commands: it carries them out, or has them carried out by the node.
type Commanded interface {
	Command(now frame.Time, c frame.Command)
}

// Command carries out a command on the worker of the node that it changes,
// between two steps.
func (e *Engine) Command(worker int, n frame.Node, c frame.Command) error {
	return e.onNode(worker, n, func(now frame.Time, nd *node) error {
		nd.command(now, c)
		return nil
	})
}

// command has a command carried out by what is interposed at the node, if that wants it.
func (n *node) command(now frame.Time, c frame.Command) {
	if w, ok := n.Node.(Commanded); ok {
		w.Command(now, c)
	} else {
		c.Do(now)
	}
}

// onNode runs f on the worker of a node.
func (e *Engine) onNode(worker int, n frame.Node, f func(frame.Time, *node) error) error {
	w, err := e.worker(worker)
	if err != nil {
		return err
	}
	stopped := w.Do(func(now frame.Time) {
		if nd := w.find(n); nd == nil {
			err = fmt.Errorf("the node is not on worker %d", worker)
		} else {
			err = f(now, nd)
		}
	})
	if stopped != nil {
		return stopped
	}
	return err
}
