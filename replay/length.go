package replay

import "gswitch/frame"

// Length reads a record to its end, without replaying it, and returns how long it is: from
// its beginning to the last instant that was recorded. A record that is cut off or was lost
// has a length, too; of one that is damaged it returns the error.
func Length(in *Reader) (frame.Time, error) {
	for {
		_, err := in.next()
		if err == nil {
			continue
		}
		if Ended(err) {
			return max(0, in.last-in.Header.Start), nil
		}
		return 0, err
	}
}
