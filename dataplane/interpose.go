package dataplane

import (
	"fmt"

	"gswitch/frame"
)

// Interpose replaces a node with the result of wrap between two steps: from then on the
// engine calls the wrapper, which calls the node. Ports stay with the original node, and
// calls still identify it by the original. The engine keeps using the original for all
// interfaces besides frame.Node (Handoff, Backpressured, Posted, DropTap, Flusher). If
// wrap returns an error nothing changes. wrap runs on the worker and must not block.
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

// Uninterpose puts the original node back. It returns an error if it is not wrapped.
func (e *Engine) Uninterpose(worker int, n frame.Node) error {
	return e.onNode(worker, n, func(_ frame.Time, nd *node) error {
		if nd.Node == nd.id {
			return fmt.Errorf("the node on worker %d is not wrapped", worker)
		}
		nd.Node = nd.id
		return nil
	})
}

// Advance makes a node do what is due, in addition to the worker's own loop. For example,
// new tables are in force when it returns.
func (e *Engine) Advance(worker int, n frame.Node) error {
	return e.onNode(worker, n, func(now frame.Time, nd *node) error {
		e.workers[worker].advance(now, nd)
		return nil
	})
}

// Commanded is implemented by wrappers (Interpose) that need to see commands. They carry
// them out themselves or through the node.
type Commanded interface {
	Command(now frame.Time, c frame.Command)
}

// Command carries out a command on the worker of the node that it changes, between two
// steps.
func (e *Engine) Command(worker int, n frame.Node, c frame.Command) error {
	return e.onNode(worker, n, func(now frame.Time, nd *node) error {
		nd.command(now, c)
		return nil
	})
}

// command carries out a command, through the node's wrapper if that is Commanded.
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
