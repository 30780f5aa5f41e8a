//go:build race

package verbs

// underRace: the race detector allocates in the program's name.
const underRace = true
