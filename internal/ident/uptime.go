package ident

import "time"

var started = time.Now()

// awake stands in where the running time of the machine cannot be read: it holds no time that the machine slept.
func awake() time.Duration { return time.Since(started) }
