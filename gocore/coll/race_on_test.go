//go:build race

package coll

// raceEnabled: the detector sees only Go memory, so the C executor is left out and large cases are few.
const raceEnabled = true
