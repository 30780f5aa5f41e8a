// Package policy is OpenQueue: how an egress queue is buffered and served, as a
// text of a few lines. A policy declares queues, buffers that they share and the
// port that serves them, and says by comparators and boundary conditions who is
// dropped, who leaves a queue first, and which queue is served (Menikkumbura,
// "Programmable Buffer Management", dissertation, Purdue University 2022, chapter
// 2).
//
// Check reads and verifies a text, Order makes it the order of an egress queue
// (scheduler.Order), Shadow runs it beside the one in force, on records of the
// frames that come. The engine is the same in both, and judges a packet when it has
// been queued: what must go then is pushed out (scheduler.PushOuter).
package policy
