package render

import "time"

// Duration is a length of time as a person says it: "14 s", "1 h 4 min", "41 d".
func Duration(d time.Duration) string { return duration(d) }
