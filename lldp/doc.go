// Package lldp reads and writes what neighbours advertise of themselves:
// frames of the Link Layer Discovery Protocol (IEEE Std 802.1AB-2016).
package lldp
