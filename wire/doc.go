// Package wire knows the bytes: header views, codecs, checksums, edits in
// place, the flow hash and the one parser that fills frame.Meta.
//
// Every header comes in two shapes. A view (type IPv4 []byte) reads and writes
// single fields in place; it does not check its length, so it is for bytes
// that the parser or a Decode accepted. A record (type IPv4Fields struct)
// holds the whole header:
//
//	Encode(b) n          writes the header to b, returns its length, or 0 if b is too short
//	Decode(b) n, reason  reads it from outside bytes; reason is frame.Keep if it is whole
//
// Decode keeps every bit that Encode writes, so that encoding what was decoded
// gives the same bytes; checksums are kept, not computed (see Checksum and its
// neighbours). Slices in a record (options, addresses) alias the decoded bytes.
//
// An accessor bears the name of the field in the document that its type cites:
// X reads it, SetX writes it. All numbers in records and accessors are in host
// order, all lengths in bytes.
package wire

import "encoding/binary"

var be = binary.BigEndian
