// Package units reads and writes quantities with their units: rates (10Gbps),
// sizes (64KiB) and durations (200us). Documents, options of congestion
// control and expectations spell them alike.
//
//	Rate, Size, Duration  whole quantities, as fields of documents
//	Bits, Bytes, Time     the same units for numbers that need not be whole
//
// One spelling of each unit is written and all common ones are read: Gbps,
// Gbit, Gbit/s and Gb/s are one rate, kB and KB one size. A prefix of sizes is
// decimal (kB, MB) or binary (KiB, MiB; IEC 80000-13).
package units
