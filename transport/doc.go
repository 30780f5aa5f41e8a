// Package transport is reliable delivery for the host NIC, in packet sequence
// space: what to send next, what an acknowledgement means, what to answer.
package transport
