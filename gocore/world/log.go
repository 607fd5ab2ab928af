package world

import (
	"fmt"
	"os"
)

// logLine writes one line to standard error; a failure to write has nowhere to go.
func logLine(s string) { _, _ = fmt.Fprintln(os.Stderr, "shmem: "+s) }
