// Package api is the wire form of the control API, generated from
// control.proto (gswitch) and host.proto (ghost).
package api

//go:generate protoc --proto_path=. --go_out=. --go_opt=paths=source_relative --connect-go_out=. --connect-go_opt=paths=source_relative,simple,package_suffix= control.proto host.proto transparent.proto
