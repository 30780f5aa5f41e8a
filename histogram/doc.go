// Package histogram counts values in log-linear buckets: as many to each power
// of two, so that a bucket is narrow beside the values that it counts.
//
//	Bin, Range   the buckets of a precision, for those that keep their own counts
//	Buckets      plain words with eight buckets to a power of two
//	Histogram    Buckets with the sum and the largest value
//
// Words are plain: they are read by their owner.
package histogram
